"""Routes without a routine: those of the service, and documents about the endpoints of a schema snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from rowcall.core.codegen.selection import TypesOf
from rowcall.core.documents.wire_types import as_wire_types
from rowcall.core.endpoint.access import ANYONE
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.http.router import Route
from rowcall.core.text.ascii_case import ascii_lower
from rowcall.service.auth.antiforgery import steps_of_fixed_routes, token_routes
from rowcall.service.auth.cross_site import foreign_refusal
from rowcall.service.auth.token_refresh import refresh_routes
from rowcall.service.cache.tag_invalidation import tag_routes
from rowcall.service.database.databases import Databases
from rowcall.service.identity.refresh_token_use import RefreshTokenUse
from rowcall.service.limits.rate_limiting import limit_named
from rowcall.service.operations.audit_trail import record_signing
from rowcall.service.operations.health import health_routes
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.pipeline.fixed_route import FixedRoute
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.protector import Keys
from rowcall.service.request.subrequests import Subrequests
from rowcall.service.request_context.request_context import Step
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot

FixedRoutes = Iterable[FixedRoute]
CompiledRoute = tuple[Route, tuple[Step, ...]]


def service_routes(
    services: Services, keys: Keys, databases: Databases, single_use: RefreshTokenUse
) -> Iterator[CompiledRoute]:
    """Iterate over the routes that are the same for every schema snapshot: operations, invalidation by tag, antiforgery
    tokens, the API reference, and routes of sign-in.

    keys: the key ring, for tokens. single_use: finds out whether a refresh token is used for the first time.
    """
    identity = services.auth
    for fixed in (
        *_operations(services),
        *tag_routes(services, steps_of_fixed_routes(services)),
        *token_routes(identity),
        *_reference(services),
    ):
        yield _route(fixed), fixed.steps
    for fixed in (
        *refresh_routes(services.options.auth, identity.sessions, keys, single_use),
        *_passkeys(services, databases),
        *_second_factor(services),
        *_external(services, keys, single_use),
    ):
        yield _route(fixed), (*record_signing(services, fixed.method, fixed.path), *fixed.steps)


def compile_routes(routes: FixedRoutes) -> Iterator[CompiledRoute]:
    """Iterate over routes with their steps, in the form of the route table."""
    return ((_route(fixed), fixed.steps) for fixed in routes)


def _route(fixed: FixedRoute, *, refused: bool = False) -> Route:
    """Return the route without its steps. refused: as `Route.refused`."""
    return Route(fixed.method, ascii_lower(fixed.path), (), (), refused, fixed.access)


def _external(services: Services, keys: Keys, single_use: RefreshTokenUse) -> FixedRoutes:
    """Return the routes of sign-in with external providers; none if they are not configured. keys, single_use: as for
    `service_routes`.
    """
    if services.options.auth.external is None:
        return ()
    # Imports the HTTP client and pyjwt, which only these routes need.
    from rowcall.service.auth.external.sign_in import external_routes

    return external_routes(services, keys, single_use)


def _passkeys(services: Services, databases: Databases) -> FixedRoutes:
    """Return the routes of passkeys, with the database of their connection; none if they are not configured."""
    options = services.options.passkeys
    if options is None:
        return ()
    # Imports the WebAuthn library, which only these routes need.
    from rowcall.service.auth.passkeys.routes import passkey_routes

    main = options.connection is None
    return passkey_routes(
        options, services, databases.main if main else databases.get_or_open(options.connection or "")
    )


def _reference(services: Services) -> FixedRoutes:
    """Return the routes of the API reference; none if it is not configured."""
    page = services.options.reference
    if page is None:
        return ()
    from rowcall.service.codegen.reference_page import reference_routes

    return reference_routes(page, services)


def _second_factor(services: Services) -> FixedRoutes:
    """Return the routes of the second factor; none if it is not configured."""
    options = services.options.auth.second_factor
    if options is None:
        return ()
    # Imports the library for QR codes, which only these routes need.
    from rowcall.service.auth.second_factor.routes import second_factor_routes

    return second_factor_routes(options, services)


def snapshot_routes(
    snapshot: SchemaSnapshot, services: Services, send_subrequest: Subrequests | None
) -> Iterator[CompiledRoute]:
    """Iterate over the routes of documents about the endpoints, and of MCP tools. send_subrequest: sends the calls of
    tools to endpoints; None: there are no tools.
    """
    options = services.options
    result = _as_sent(snapshot, options)
    # Imported here: these modules are a tenth of all, and most services have no such documents.
    if options.openapi is not None or options.tool_schemas is not None or snapshot.example_requests:
        from rowcall.service.codegen.documents import document_routes

        documents = document_routes(
            *result, snapshot.example_requests, options.openapi, options.tool_schemas, snapshot.postgrest
        )
        for path, step in documents:
            fixed = FixedRoute("GET", path, ANYONE, (step,))
            yield _route(fixed), fixed.steps
    if send_subrequest is not None and options.mcp is not None:
        from rowcall.service.mcp.server import mcp_routes

        services = replace(services, limiting=partial(limit_named, services))
        foreign = foreign_refusal(options.auth, options.forwarding) if options.auth.cross_site is not None else None
        server = mcp_routes(
            *result,
            options.mcp,
            services,
            send_subrequest.call_for_caller,
            steps_of_fixed_routes(services),
            foreign,
            snapshot.postgrest,
            send_subrequest.call_interface,
        )
        for fixed in server:
            refused = fixed.method == "GET" and fixed.path == options.mcp.path
            yield _route(fixed, refused=refused), fixed.steps


def _as_sent(snapshot: SchemaSnapshot, options: WorkerOptions) -> tuple[Sequence[Endpoint], TypesOf]:
    """Return the endpoints as documents have to describe them, and a function that returns the types of an endpoint's
    database. Both have the types that values have in responses, such as text for large numbers if the options say so.
    """
    safe, resolve = options.safe_numbers, options.resolve_nested
    return as_wire_types(snapshot.endpoints, snapshot.types_of, safe_numbers=safe, resolve_nested=resolve)


def _operations(services: Services) -> Iterator[FixedRoute]:
    """Yield the routes of health checks and statistics, if they are enabled."""
    if services.options.health is not None:
        yield from health_routes(services.options.health, services)
    if services.options.statistics is not None:
        from rowcall.service.operations.statistics import statistics_routes

        yield from statistics_routes(services.options.statistics, services)
