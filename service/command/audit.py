"""`--audit`: report what the service exposes and to whom, as text, or as JSON for CI (`--json`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import psycopg

from rowcall.core.config import Settings
from rowcall.core.config.output.masking import names_a_secret
from rowcall.core.config.output.secret_values import secret_values
from rowcall.core.endpoint.access import Access
from rowcall.core.endpoint.capabilities import Schedule
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.operations.audit import (
    DatabaseFacts,
    Finding,
    Severity,
    database_findings,
    endpoint_findings,
    openness,
)
from rowcall.core.operations.published_secrets import Secret, comment_secrets, published_secrets
from rowcall.core.operations.route_access import RouteAccess, route_accesses, static_accesses
from rowcall.core.outgoing.address import url_for_logs
from rowcall.core.webhooks.options import Subscriber
from rowcall.service.codegen.describing import Describer, SourceConnector
from rowcall.service.command.about import print_json
from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import connections, require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.database.connector import Connector
from rowcall.service.options.audit import settings_findings
from rowcall.service.options.capabilities.descriptions import descriptions
from rowcall.service.options.from_settings import worker_options
from rowcall.service.options.server.http import listener_plans
from rowcall.service.options.server.metrics import AdminOptions, admin_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.shared_state.state_folder import StateFolder
from rowcall.service.snapshot.access_facts import access_facts, audited_sources
from rowcall.service.snapshot.exposure import exposure
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.snapshot.snapshot_reader import SnapshotReader
from rowcall.service.startup_error import StartupError
from rowcall.service.worker.application import Application


def audit(arguments: Arguments) -> int:
    """Print the findings, the routes, and what happens without a request; with `--json` as one JSON object.

    Return 1 if a finding is high, or with `--strict` medium. Raises ConfigError, StartupError.
    """
    settings = load(arguments).settings
    require_readable(settings)
    logging.getLogger("rowcall").addHandler(logging.NullHandler())
    logging.getLogger("rowcall").propagate = False
    subscribers: Sequence[Subscriber] = ()
    results: list[
        tuple[tuple[Endpoint, ...], list[DatabaseFacts], tuple[tuple[str, str], ...], tuple[RouteAccess, ...]]
    ] = []
    urls = [plan.address.url(plan.address.port) for plan in listener_plans(settings)]
    with connections(settings, demo=arguments.has("--demo")) as opened:
        options = worker_options(settings, opened)
        subscribers = () if options.deliveries is None else options.deliveries.subscribers
        reader = SnapshotReader(settings, options, opened.plan, exposure(settings, options, opened.plan))

        async def read() -> None:
            snapshot = await reader.first()
            connector = Connector(options.target)
            requested = descriptions(settings, options.target.parameters.get("dbname", ""), options.auth, urls)
            describer = Describer(requested, connector, reader.source_connector)
            documents = await describer.texts(snapshot.endpoints, snapshot.types_of, snapshot.postgrest)
            requests = await describer.served_requests(snapshot.endpoints, snapshot.types_of)
            served = replace(snapshot, example_requests=requests)
            routes = await _accesses(options.with_documents(requested), served, admin_options(settings))
            facts = await _facts(connector, reader.source_connector, snapshot, options)
            results.append((snapshot.endpoints, facts, documents, routes))

        asyncio.run(read())
    ((endpoints, facts, documents, routes),) = results
    findings = (
        *settings_findings(settings, options),
        *endpoint_findings(endpoints, login=options.auth.login),
        *(finding for each in facts for finding in database_findings(each, endpoints)),
        *published_secrets(documents, _secrets(settings, endpoints)),
    )
    findings = tuple(sorted(findings, key=lambda finding: list(Severity).index(finding.severity)))
    exposed = openness(endpoints)
    counts = {severity.value: sum(finding.severity is severity for finding in findings) for severity in Severity}
    failed = bool(counts["high"] or (arguments.has("--strict") and counts["medium"]))
    if arguments.has("--json"):
        print_json(
            {
                "passed": not failed,
                "role": facts[0].role.name,
                "endpoints": exposed.count,
                "open": list(exposed.endpoints),
                "routes": [route.members() for route in routes],
                "schedules": [_schedule(endpoint, schedule) for endpoint, schedule in _schedules(endpoints)],
                "subscribers": [_subscriber(subscriber) for subscriber in subscribers],
                "counts": counts,
                "findings": [_as_json(finding) for finding in findings],
            }
        )
    else:
        _print(findings, exposed.endpoints, exposed.count, facts[0])
        _print_routes(routes)
        _print_without_callers(endpoints, subscribers)
    return int(failed)


def _secrets(settings: Settings, endpoints: Sequence[Endpoint]) -> Iterator[Secret]:
    """Yield the secrets of the configuration, and those in comments of endpoints."""
    yield from secret_values(settings)
    for endpoint in endpoints:
        yield from comment_secrets(endpoint, names_a_secret)


async def _facts(
    main: Connector, source_connector: SourceConnector, snapshot: SchemaSnapshot, options: WorkerOptions
) -> list[DatabaseFacts]:
    """Read roles, rights and policies from the main database, and then from the others where routines were found.
    Raises `StartupError`."""
    facts: list[DatabaseFacts] = []
    try:
        for source in audited_sources(snapshot):
            connector = main if source is None else source_connector(source)
            async with await connector.open_plain() as connection:
                facts.append(await access_facts(connection, snapshot, options, source))
    except psycopg.Error as error:
        raise StartupError(f"the rights in the database cannot be read: {str(error).strip()}") from None
    return facts


async def _accesses(
    options: WorkerOptions, snapshot: SchemaSnapshot, admin: AdminOptions | None
) -> tuple[RouteAccess, ...]:
    """Return the access of every route of the service. For those of workers, an application is built, not started.
    admin: None: there is no admin listener.
    """
    store = StateFolder()
    try:
        application = Application(replace(options, store=str(store.path)))
        try:
            application.prepare(snapshot)
            routes = [*route_accesses(application.prepared_routes())]
        finally:
            await application.close()
    finally:
        store.remove()
    if options.static is not None:
        routes += static_accesses(options.static.closed, options.static.access)
    if options.postgrest is not None:
        # The database decides by role: a token names it, else it is the anonymous one.
        access = Access(anonymous=options.postgrest.anonymous_role is not None, database_role=True)
        routes.append(RouteAccess("*", f"{options.postgrest.path.rstrip('/')}/*", "PostgREST's interface", access))
    if admin is not None:
        url = admin.address.url(admin.address.port)
        routes += (RouteAccess(method, url + path, "admin listener", admin.access) for method, path in admin.pages)
        if admin.console is not None:
            routes += (
                RouteAccess(method, url + path, "console", access) for method, path, access in admin.console.routes
            )
    return tuple(sorted(routes, key=lambda route: (route.path, route.method, route.part)))


def _print_routes(routes: Sequence[RouteAccess]) -> None:
    """Print the table of routes: method, path, who has access, how callers authenticate, conditions, what answers."""
    _print_table(
        ("method", "path", "access", "authentication", "conditions", "answered by"), map(RouteAccess.columns, routes)
    )


def _print_without_callers(endpoints: Iterable[Endpoint], subscribers: Sequence[Subscriber]) -> None:
    """Print what happens without a request: the schedules, and to whom webhooks are sent."""
    schedules = [tuple(_schedule(endpoint, schedule).values()) for endpoint, schedule in _schedules(endpoints)]
    if schedules:
        _print_table(("schedule", "timezone", "endpoint", "runs"), schedules)
    if subscribers:
        _print_table(
            ("subscriber", "url", "topics"),
            ((item.name, url_for_logs(item.url), " ".join(item.topics)) for item in subscribers),
        )


def _schedules(endpoints: Iterable[Endpoint]) -> Iterator[tuple[Endpoint, Schedule]]:
    """Return the endpoints that have a schedule, with it."""
    return ((endpoint, endpoint.options.schedule) for endpoint in endpoints if endpoint.options.schedule is not None)


def _schedule(endpoint: Endpoint, schedule: Schedule) -> dict[str, str]:
    return {
        "schedule": schedule.expression,
        "timezone": schedule.time_zone,
        "endpoint": endpoint.name,
        "part": endpoint.routine.identity,
    }


def _subscriber(subscriber: Subscriber) -> dict[str, object]:
    return {"name": subscriber.name, "url": url_for_logs(subscriber.url), "topics": list(subscriber.topics)}


def _print_table(head: tuple[str, ...], body: Iterable[tuple[str, ...]]) -> None:
    """Print rows as columns below the names in `head`."""
    rows = [head, *body]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print()
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _as_json(finding: Finding) -> dict[str, str]:
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "about": finding.about,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def _print(findings: Sequence[Finding], opened: Sequence[str], count: int, facts: DatabaseFacts) -> None:
    """Print the findings as text. opened: names of the endpoints that are open to anonymous callers. count: number of
    all endpoints. facts: of the main database.
    """
    print(
        f"{len(opened)} of {count} endpoints are open to anonymous callers; the service connects as {facts.role.name}"
    )
    for name in opened:
        print(f"  {name}")
    for finding in findings:
        print(f"\n{finding.severity.value.upper()} {finding.code}: {finding.about}")
        print(f"  {finding.message}")
        print(f"  → {finding.remedy}")
    counts = ", ".join(f"{sum(finding.severity is level for finding in findings)} {level.value}" for level in Severity)
    print(f"\n{counts}" if findings else "\nNothing found")
