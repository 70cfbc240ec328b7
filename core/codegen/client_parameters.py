"""The parameters that a client sends, and their places in the request (clients-15, clients-19)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rowcall.core.catalogue.source import Transport
from rowcall.core.codegen.automatic import supplied_parameters
from rowcall.core.codegen.options import ClientOptions
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, NullText, QueryNull, ResultPath, ValueKind
from rowcall.core.endpoint.result_shape import BYTES
from rowcall.core.formats.table_formats import EXCEL, has_fixed_format, media_types
from rowcall.core.queryable.description import query_parameters

SEGMENT = re.compile(r"\{([^{}?]+)(\??)\}")
"""A placeholder of a path; `?` marks an optional one."""


@dataclass(frozen=True, slots=True)
class ParameterPlacement:
    """Where a client puts each parameter: into the query string, the path or the body. Numbers are indexes into the
    list of parameters that the client sends."""

    query: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    """Parameters outside the query string of a request whose other parameters are in it."""
    body: int | None = None
    """The parameter whose value is the whole body; None: there is none."""
    json_body: bool = False
    """All parameters are members of a JSON body."""


def client_parameters(endpoint: Endpoint, options: ClientOptions) -> Iterator[EndpointParameter]:
    """Yield the parameters that a client sends; of several with one name, the first. With `omit_automatic`, parameters
    that the service fills itself are left out.

    Parameters of a query over the result (`queryable`) follow if values are in the query string and no parameter is the
    whole body.
    """
    yield from supplied_parameters(endpoint, options.claims if options.omit_automatic else None)
    if endpoint.transport is Transport.QUERY and endpoint.raw_body is None:
        yield from query_parameters(endpoint)


def accepts_uploads(endpoint: Endpoint) -> bool:
    """Return whether the endpoint accepts uploaded files."""
    upload = endpoint.options.upload
    return upload is not None and upload.enabled


def returns_bytes(endpoint: Endpoint, options: ClientOptions) -> bool:
    """Return whether the result is a spreadsheet, or a value or concatenated rows of `bytea`, for which clients have no
    type."""
    table, shape = _table_type(endpoint, options), endpoint.shape
    is_bytea = shape.content_type == BYTES and shape.path in (ResultPath.ROWS, ResultPath.SCALAR)
    return table == EXCEL or (table is None and is_bytea)


def returns_text(endpoint: Endpoint, options: ClientOptions) -> bool:
    """Return whether the result is raw text or an HTML table."""
    return endpoint.options.raw or _table_type(endpoint, options) is not None


def _table_type(endpoint: Endpoint, options: ClientOptions) -> str | None:
    """Return the media type in which the rows are sent instead of JSON; None: none. If a parameter selects the format,
    it is None, as the format is JSON without a value."""
    return next(iter(media_types(endpoint, options.tables)), None) if has_fixed_format(endpoint) else None


def returns_response(endpoint: Endpoint) -> bool:
    """Return whether the response is a file or that of another service, which clients return as it is."""
    requested = endpoint.options
    return requested.proxy_out is not None or endpoint.passes_through or requested.download is not None


def uses_query(endpoint: Endpoint) -> bool:
    """Return whether the endpoint has parameters in the query string, including those that clients omit (clients-9,
    clients-10)."""
    travels = endpoint.transport is Transport.QUERY or accepts_uploads(endpoint)
    if travels and endpoint.options.queryable is not None:
        return True
    return travels and len(endpoint.parameters) > len(SEGMENT.findall(endpoint.path))


def writes_null_as_word(endpoint: Endpoint) -> bool:
    """Return whether NULL is the word `null` in the query string and the path (`query_string_null_handling
    null_literal`). Otherwise it is an empty value."""
    return endpoint.options.query_null is QueryNull.NULL_LITERAL


def reads_null_as_word(endpoint: Endpoint) -> bool:
    """Return whether a result that is a single value is the text `NULL` for NULL (`text_response_null_handling
    null_literal`). Otherwise the body is empty."""
    return endpoint.options.null_text is NullText.NULL_LITERAL and endpoint.shape.path is ResultPath.SCALAR


def parameter_placement(endpoint: Endpoint, parameters: Sequence[EndpointParameter]) -> ParameterPlacement:
    """Return where a client puts parameters of the endpoint. parameters: those that it sends, to which the indexes of
    the result refer."""
    raw = endpoint.raw_body
    body = next((index for index, item in enumerate(parameters) if item is raw), None) if raw is not None else None
    if endpoint.transport is Transport.QUERY or accepts_uploads(endpoint) or body is not None:
        excluded = tuple(index for index, item in enumerate(parameters) if item.path or index == body)
        query = tuple(index for index in range(len(parameters)) if index not in excluded)
        # fetch refuses a GET that has a body.
        return ParameterPlacement(query, excluded, None if endpoint.method == "GET" else body)
    return ParameterPlacement(json_body=bool(parameters) and endpoint.method not in ("GET", "HEAD"))


def is_merge_patch(endpoint: Endpoint, parameter: EndpointParameter) -> bool:
    """Return whether the parameter receives members of the body as one object (`is merge patch`). Its own value has to
    be an object, not null and not JSON text."""
    name = endpoint.options.patch_parameter
    is_named = name is not None and parameter.db_name.lower() == name.lower()
    return is_named and parameter.kind is ValueKind.JSON and endpoint.transport is Transport.BODY


def takes_effect_once(endpoint: Endpoint) -> bool:
    """Return whether requests take effect once (`idempotent`), so that a client sends a key and may repeat them."""
    return endpoint.options.idempotency is not None
