"""The writer of an endpoint's response body, chosen once from its declared result and its comment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rowcall.core.endpoint.endpoint import Endpoint, ResultPath, ResultShape
from rowcall.core.endpoint.result_shape import BYTES
from rowcall.core.endpoint.result_types import column_names
from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.page_rows import PageWriter
from rowcall.ext.rendering.raw_rows import BytesRenderer, RawRenderer
from rowcall.ext.rendering.rows import Renderer


def body_writer(endpoint: Endpoint, codecs: Codecs) -> BodyWriter | None:
    """Return the writer of the endpoint's response body.

    None if there is no body, and for several statements, each of which has its own writer.
    """
    writer = _body_writer(endpoint, codecs)
    return None if writer is None else with_column_checks(writer, endpoint)


def with_column_checks(writer: BodyWriter, endpoint: Endpoint) -> BodyWriter:
    """Make the writer refuse results whose columns are not those for which the endpoint was built, and return it: after
    a change of the schema, a result must not be rendered in the wrong form."""
    type_oids = endpoint.shape.type_oids
    if type_oids is None:
        return writer
    shape = endpoint.shape
    writer.expect(type_oids, column_names(shape.columns), one_row=not shape.is_set and not endpoint.options.single)
    return writer


def _body_writer(endpoint: Endpoint, codecs: Codecs) -> BodyWriter | None:
    """Return the writer of the body, without column checks. None for an endpoint without a result, and for several
    statements, each of which has its own writer. Bytes take precedence over raw, raw over JSON (rendering-39)."""
    shape = endpoint.shape
    options = endpoint.options
    is_set = shape.is_set and not options.single
    if shape.path in (ResultPath.VOID, ResultPath.OBJECT):
        return None
    if shape.content_type == BYTES and (options.raw or shape.path is ResultPath.ROWS):
        return BytesRenderer(is_set)
    if options.raw and shape.path is ResultPath.SCALAR:
        return RawRenderer(codecs, is_set)
    if options.raw:
        separator = None if options.separator is None else options.separator.encode()
        new_line = (options.new_line or "").encode()
        return RawRenderer(
            codecs, is_set, separator, new_line, options.column_names, options.neutralize_formulas, csv=options.csv
        )
    keys = list(_keys(shape)) if shape.named else []
    query = endpoint.query
    page_size = None if query is None else query.page_size
    counted = query is not None and query.counted
    renderer = Renderer(
        codecs,
        "scalar" if shape.path is ResultPath.SCALAR else "rows",
        is_set,
        shape.named,
        keys,
        blank_is_null=shape.blank_is_null,
        first_only=shape.first_only,
        hidden=0 if page_size is None else 1 + counted,
        lines=options.json_lines,
    )
    return renderer if page_size is None else PageWriter(renderer, page_size, counted)


def _keys(shape: ResultShape) -> Iterator[bytes | tuple[bytes, ...]]:
    """Yield the JSON key of each column of the result; for an expanded composite, the tuple of its keys."""
    for position, columns in groupby(shape.columns, key=lambda column: column.position):
        if position is None:
            yield from (column.key for column in columns)
        else:
            yield tuple(column.key for column in columns)


def is_json(endpoint: Endpoint) -> bool:
    """Whether rows are sent as JSON."""
    return not endpoint.options.raw and endpoint.shape.content_type != BYTES


def begins_with_names(endpoint: Endpoint) -> bool:
    """Whether the body begins with a row of column names, which a result without rows has too."""
    options = endpoint.options
    is_text = endpoint.shape.path is ResultPath.ROWS and endpoint.shape.content_type != BYTES
    return options.raw and options.column_names and is_text
