"""What the table formats share: which rows, titles and header fields they have, and how they are streamed."""

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
    """One format of one endpoint: what writes its rows, and the step that sends them."""

    writer: BodyWriter
    respond: Step


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one endpoint as a table. Composites are expanded whatever JSON does (formats-2)."""

    endpoint: Endpoint
    """With the shape of the table."""
    lines: HeaderLines
    database: Database
    time_limit: float
    camel_case: bool

    @property
    def is_set(self) -> bool:
        return self.endpoint.shape.is_set and not self.endpoint.options.single

    @property
    def routine(self) -> str:
        return self.endpoint.routine.name

    @property
    def titles(self) -> list[bytes]:
        """A column without a name is called like the routine (rendering-24)."""
        keys = [column.key for column in self.endpoint.shape.columns]
        return keys or [api_name(self.routine, self.camel_case).encode()]

    def headers(self, context: RequestContext, content_type: str) -> Headers:
        """A comment's content type does not win over a table format (formats-3)."""
        return [("content-type", content_type), *self.lines.fields(partial(argument_text, context))]

    def stream(self, context: RequestContext, headers: Headers, encoder: Encoder = PLAIN) -> Awaitable[None]:
        return responses.stream_response(
            context, self.database, self.endpoint.success_status, headers, self.time_limit, encoder
        )
