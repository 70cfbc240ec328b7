"""The table formats from which requests to an endpoint can choose."""

from __future__ import annotations

from collections.abc import Awaitable

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.header_lines import header_lines
from rowcall.core.endpoint.template import Template
from rowcall.core.errors.problems import Problem
from rowcall.core.formats.table_formats import HTML, HtmlTables
from rowcall.ext.rendering.html_rows import HtmlTable
from rowcall.service.database.database import Database
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.response.formats.table import Table, TableFormat


def table_formats(
    endpoint: Endpoint, template: Template, options: WorkerOptions, database: Database
) -> dict[str, TableFormat]:
    """Return the formats by key. endpoint: with the shape of a table. template: the format that the comment names,
    which may have placeholders; if it has none, the formats that it does not name are left out, except Parquet.
    """
    table = Table(endpoint, header_lines(endpoint), database, options.http.slow_client, options.camel_case)
    formats: dict[str, TableFormat] = {}
    excel, html = options.tables.excel, options.tables.html
    if excel is not None and _may_be(template, excel[0]):
        # Imports xlsxwriter, which workers without spreadsheets do not need.
        from rowcall.service.response.formats.excel import excel_format

        formats[excel[0]] = excel_format(table, excel[1])
    if options.tables.parquet is not None:
        # Imports pyarrow, an extra.
        from rowcall.service.response.formats.parquet import parquet_format

        formats[options.tables.parquet] = parquet_format(table)
    if html is not None and _may_be(template, html[0]):
        formats[html[0]] = _html_format(table, html[1])
    return formats


def _may_be(template: Template, key: str) -> bool:
    """Return whether the format that the comment names can be the one with this key: the template is this key, or
    contains a placeholder."""
    return not template.is_fixed or template.parts == (key,)


def _html_format(table: Table, look: HtmlTables) -> TableFormat:
    """Return the format of HTML tables: rendered by a writer of their own, in the same way as JSON."""
    status = table.endpoint.success_status

    def respond(context: RequestContext) -> Awaitable[None] | None:
        execution = context.execution
        if execution is None:
            raise Problem(500, "the routine returned nothing")
        headers = table.headers(context, HTML)
        if execution.streaming:
            return table.stream(context, headers)
        context.protocol.response_bytes(status, headers, execution.body)
        return None

    return TableFormat(HtmlTable(table.is_set, table.titles, look.header.encode(), look.footer.encode()), respond)
