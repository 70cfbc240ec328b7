"""`tenant`: the tenant of a request as a setting, as the schema in which names are looked up, or as a connection."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from rowcall.core.endpoint.capabilities import ValuePlace
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem, unauthorized_problem
from rowcall.core.text.naming import quote_identifier
from rowcall.service.database.preamble import Command, Preamble
from rowcall.service.database.statements import statement_for
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.surroundings import LONGEST, tenant_of

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,47}")
"""Tenants that may be part of the name of a schema."""
NO_SCHEMA = "the tenant does not exist"
_EXISTS = "select pg_catalog.length($1::text::pg_catalog.regnamespace::text)"
"""Fails if the schema does not exist: a search path without it would lead to the objects of other schemas."""


def require_tenant(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that refuses requests without a valid tenant; None: the endpoint is for all tenants.

    The step raises `Problem` without a tenant: if it is a claim, 401 for an anonymous caller and 403 for others; if it
    is a header, 400; if it is part of the host name, 404. For an invalid name: 400.
    """
    tenant = endpoint.options.tenant
    if tenant is None:
        return None
    challenge = services.options.auth.schemes.challenge

    def require(context: RequestContext) -> None:
        value = tenant_of(tenant, context)
        if value is None and tenant.place is ValuePlace.CLAIM:
            if context.user is None:
                raise unauthorized_problem(challenge, f"{endpoint.name} is for signed-in users of a tenant")
            raise Problem(403, f"{endpoint.name} is for users with a tenant in the claim {tenant.name}")
        if value is None and tenant.place is ValuePlace.HEADER:
            raise Problem(400, f"the header {tenant.name} has to name the tenant")
        if value is None:
            raise Problem(404, f"the host name is none of a tenant ({tenant.name})")
        if len(value) > LONGEST or not value.isprintable() or (tenant.schemas and not _NAME.fullmatch(value)):
            raise Problem(400, "the name of the tenant has characters that are not allowed, or is too long")

    return require


class TenantConnections:
    """Continues a request on the connection of its tenant. steps: returns the further steps on a connection."""

    def __init__(self, endpoint: Endpoint, services: Services, steps: Callable[[Endpoint, Services], tuple[Step, ...]]):
        tenant = endpoint.options.tenant
        assert tenant is not None  # noqa: S101 (created for such endpoints only)
        self._tenant = tenant
        self._endpoint = endpoint
        self._services = services
        self._compile = steps
        spelled = (access.name for key, access in services.options.others.items() if key in services.others)
        self._names = tenant.connections(spelled)
        self._compiled: dict[str, tuple[Step, ...]] = {}
        """By name of the connection."""

    def choose(self, context: RequestContext) -> None:
        """Continue with the steps on the connection of the tenant. Raises `Problem` 404 for a tenant without one."""
        name = self._names.get(tenant_of(self._tenant, context) or "")
        if name is None:
            raise Problem(404, "there is no such tenant")
        steps = self._compiled.get(name)
        if steps is None:
            options = replace(self._endpoint.options, connection=name)
            steps = self._compile(replace(self._endpoint, options=options), self._services.for_connection(name))
            self._compiled[name] = steps
        context.follow(steps)


def tenant_settings(endpoint: Endpoint, _services: Services) -> Preamble | None:
    """Return the preamble with the setting or the search path of the tenant; None: the endpoint is for all tenants, or
    the tenant selects a connection. With a search path, the preamble also has a command that fails if its first schema
    does not exist."""
    tenant = endpoint.options.tenant
    if tenant is None or tenant.connection:
        return None
    if not tenant.schemas:
        name = tenant.setting.encode()

        def setting(context: RequestContext) -> list[bytes | None]:
            return [name, (tenant_of(tenant, context) or "").encode()]

        return Preamble(settings=(setting,))
    first, *_ = tenant.schemas

    def search_path(context: RequestContext) -> list[bytes | None]:
        value = tenant_of(tenant, context) or ""
        path = ", ".join(quote_identifier(schema.replace("{0}", value)) for schema in tenant.schemas)
        return [b"search_path", path.encode()]

    def schema(context: RequestContext) -> list[bytes | None]:
        return [quote_identifier(first.replace("{0}", tenant_of(tenant, context) or "")).encode()]

    exists = Command(statement_for(_EXISTS, 1), schema, has_no_session_effects=True, lasting=statement_for(_EXISTS, 1))
    return Preamble(settings=(search_path,), commands=(exists,))
