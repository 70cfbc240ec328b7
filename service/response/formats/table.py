"""Common parts of the table formats: rows, titles, header fields and streaming."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.header_lines import HeaderLines
from rowcall.core.text.naming import api_name
from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.service.database.database import Database
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response import responses
from rowcall.service.response.headers import Headers, argument_text
from rowcall.service.response.streaming import PLAIN, Encoder


@dataclass(frozen=True, slots=True)
class TableFormat:
    """One format of one endpoint: the writer of its rows, and the step that sends them."""

    writer: BodyWriter
    respond: Step


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one endpoint as a table. Composites are expanded whatever the JSON form is (formats-2).

    lines: header lines of the comment. time_limit: seconds for which a client may leave a streamed response unread.
    camel_case: the name of a routine becomes a column title in camel case.
    """

    endpoint: Endpoint
    """The endpoint, with the shape of the table."""
    lines: HeaderLines
    database: Database
    time_limit: float
    camel_case: bool

    @property
    def is_set(self) -> bool:
        """Whether there can be several rows."""
        return self.endpoint.shape.is_set and not self.endpoint.options.single

    @property
    def routine(self) -> str:
        return self.endpoint.routine.name

    @property
    def titles(self) -> list[bytes]:
        """Return the column titles. A column without a name has the name of the routine (rendering-24)."""
        keys = [column.key for column in self.endpoint.shape.columns]
        return keys or [api_name(self.routine, self.camel_case).encode()]

    def headers(self, context: RequestContext, content_type: str) -> Headers:
        """Return the header fields of a response. content_type: of the format; that of the comment does not override it
        (formats-3).
        """
        return [("content-type", content_type), *self.lines.fields(partial(argument_text, context))]

    def stream(self, context: RequestContext, headers: Headers, encoder: Encoder = PLAIN) -> Awaitable[None]:
        """Send a streamed result as it arrives. encoder: converts rendered rows into the bytes that are sent."""
        return responses.stream_response(
            context, self.database, self.endpoint.success_status, headers, self.time_limit, encoder
        )
