"""Paths of the four database reports (operations-6 to operations-8)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from urllib.parse import parse_qsl

import psycopg

from rowcall.core.errors.problems import Problem
from rowcall.core.operations.statistics import Report, Row, as_html, as_json
from rowcall.service.database.connector import Connector
from rowcall.service.operations.guard import Answer, HostCachedPage, Make, guarded_steps, make_answer
from rowcall.service.options.capabilities.operations import StatisticsOptions
from rowcall.service.pipeline.fixed_route import FixedRoute
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext

log = logging.getLogger("rowcall")

_VERBOSE = "set local intervalstyle = postgres_verbose"


def statistics_routes(options: StatisticsOptions, services: Services) -> Iterator[FixedRoute]:
    """Yield the route of each report."""
    connector = Connector(options.target)
    for path, report in options.paths:
        make, keep = _maker(report, options, connector), options.guarded.keep
        answer = make_answer(make) if keep is None else HostCachedPage(path, keep, make, services.host)
        yield FixedRoute("GET", path, options.guarded.access, guarded_steps(path, options.guarded, services, answer))


def _maker(report: Report, options: StatisticsOptions, connector: Connector) -> Make:
    async def make(context: RequestContext) -> Answer:
        try:
            columns, rows = await _read(report, options.schemas, connector)
        except (psycopg.Error, OSError) as error:
            log.error("statistics of %s cannot be read: %s", report.name, str(error).strip())
            raise Problem(500, "Error retrieving statistics; the log of the service says why") from None
        if _wants_html(context, options):
            return Answer(200, [("content-type", "text/html; charset=utf-8")], as_html(columns, rows))
        return Answer(200, [("content-type", "application/json")], as_json(columns, rows))

    return make


async def _read(report: Report, schemas: str | None, connector: Connector) -> tuple[list[str], list[Row]]:
    # In a transaction that is rolled back, so that the interval style applies only to this query.
    async with connector.maintenance_connection() as connection, connection.transaction(force_rollback=True):
        await connection.execute(_VERBOSE)
        statement = report.statement(connection.info.server_version, filtered=schemas is not None)
        values = (schemas,) if schemas is not None and report.filtered else None
        cursor = await connection.execute(statement.encode(), values)
        return [column.name for column in cursor.description or ()], list(await cursor.fetchall())


def _wants_html(context: RequestContext, options: StatisticsOptions) -> bool:
    """Return whether HTML is requested: by `format` in the query string (an unknown format means JSON), else by
    default.
    """
    pairs = parse_qsl(context.scope.query_string, keep_blank_values=True)
    format_name = next((value for name, value in pairs if name.casefold() == "format"), None)
    return options.html if format_name is None else format_name.casefold() == "html"
