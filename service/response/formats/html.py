"""HTML tables: rendered by a writer of their own, in the same way as JSON."""

from __future__ import annotations

from collections.abc import Awaitable

from rowcall.core.errors.problems import Problem
from rowcall.core.formats.table_formats import HTML, HtmlTables
from rowcall.ext.rendering.html_rows import HtmlTable
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.response.formats.table import Table, TableFormat


def html_format(table: Table, look: HtmlTables) -> TableFormat:
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
