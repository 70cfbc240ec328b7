"""One endpoint as a call of a Dart or Python client: its arguments, their places in the request, and its result
(clients-14 to clients-23)."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from rowcall.core.codegen.automatic import is_optional
from rowcall.core.codegen.client_parameters import (
    ParameterPlacement,
    accepts_uploads,
    client_parameters,
    parameter_placement,
    returns_bytes,
    returns_response,
    returns_text,
)
from rowcall.core.codegen.names import upper_first
from rowcall.core.codegen.options import ClientOptions
from rowcall.core.codegen.shapes import (
    INTEGER,
    JSON,
    TEXT,
    ListOf,
    Plain,
    Row,
    RowField,
    Scalar,
    Shape,
    ShapeReader,
    exact,
    named_shape,
    parameter_shape,
)
from rowcall.core.endpoint.capabilities import ClientCode, NoticeLevel
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultPath, ResultShape
from rowcall.core.events.stream_path import client_stream_path


class Reading(enum.Enum):
    """How the body of a response is read."""

    NOTHING = "nothing"
    """The body is not read."""
    RESPONSE = "response"
    """The body is not read: the caller of the client gets the response object."""
    TEXT = "text"
    """A single value in the text format of PostgreSQL."""
    JSON = "json"
    FILES = "files"
    """The metadata of each uploaded file."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How the response of a call is read. shape: of its value; it counts only if `reading` is TEXT or JSON."""

    reading: Reading
    shape: Shape = TEXT


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter that the caller of a client function supplies. shape: of its value. optional: it may be omitted."""

    parameter: EndpointParameter
    shape: Shape
    optional: bool

    @property
    def key(self) -> str:
        """Name of the parameter in requests."""
        return self.parameter.api_name

    @property
    def nullable(self) -> bool:
        return not self.parameter.constraints.never_null


@dataclass(frozen=True, slots=True)
class Call:
    """One endpoint as a function of a client.

    answer: how its response is read. placement: where its arguments are put. status: the function returns the HTTP
    status with the value. parse_url, parse_request: the function has a parameter with which its caller changes the URL
    or the request. export_url: a second function, which returns the URL, is exported. url_only: only the latter is
    generated. upload: the endpoint accepts files.
    """

    endpoint: Endpoint
    name: str
    """Name of the function."""
    arguments: tuple[Argument, ...]
    answer: Answer
    placement: ParameterPlacement
    status: bool
    parse_url: bool
    parse_request: bool
    export_url: bool
    url_only: bool
    upload: bool
    events: str | None
    """Path of the event stream to open; None: the function opens none."""

    @property
    def path_values(self) -> dict[str, Argument]:
        """Arguments in the path, by the name in their placeholder."""
        return {
            item.parameter.segment: item for item in self.arguments if item.parameter.path and item.parameter.segment
        }

    @property
    def address_needs_request(self) -> bool:
        """Whether the URL depends on arguments."""
        return bool(self.placement.query) or any(item.parameter.path for item in self.arguments)

    @property
    def body(self) -> Argument | None:
        """The argument whose value is the whole body, or None."""
        return None if self.placement.body is None else self.arguments[self.placement.body]

    @property
    def has_status(self) -> bool:
        return self.status and self.answer.reading is not Reading.RESPONSE


def call_of(
    endpoint: Endpoint, name: str, annotations: ClientCode, reader: ShapeReader, options: ClientOptions
) -> Call:
    """Return the call of an endpoint. name: of the function. annotations: what the endpoint's comment sets for the
    language of the client. reader: derives the shapes of results."""
    value = tuple(
        Argument(item, parameter_shape(item), is_optional(item)) for item in client_parameters(endpoint, options)
    )
    url_only = bool(annotations.url_only)
    path = client_stream_path(endpoint, NoticeLevel(options.event_level.upper()))
    return Call(
        endpoint=endpoint,
        name=name,
        arguments=value,
        answer=Answer(Reading.NOTHING) if url_only else _answer(endpoint, upper_first(name), reader, options),
        placement=parameter_placement(endpoint, [item.parameter for item in value]),
        status=_value_or(annotations.status_code, options.status_code),
        parse_url=_value_or(annotations.parse_url, options.parse_url),
        parse_request=_value_or(annotations.parse_request, options.parse_request),
        export_url=url_only or _value_or(annotations.export_url, options.export_urls),
        url_only=url_only,
        upload=accepts_uploads(endpoint),
        events=path if annotations.events is not False and not url_only else None,
    )


def _value_or(annotated: bool | None, default: bool) -> bool:
    """Return what the comment sets, or the default if it sets nothing."""
    return default if annotated is None else annotated


def _answer(endpoint: Endpoint, name: str, reader: ShapeReader, options: ClientOptions) -> Answer:
    shape, requested = endpoint.shape, endpoint.options
    if returns_response(endpoint):
        return Answer(Reading.RESPONSE)
    if requested.job is not None or (requested.issued_token is not None and requested.mail is None):
        return Answer(Reading.JSON, JSON)
    if requested.mail is not None:
        return Answer(Reading.NOTHING)
    if requested.login:
        return Answer(Reading.TEXT)
    if requested.void or requested.logout or shape.path is ResultPath.VOID:
        return Answer(Reading.NOTHING)
    if returns_bytes(endpoint, options):
        return Answer(Reading.RESPONSE)
    if accepts_uploads(endpoint):
        return Answer(Reading.FILES)
    if returns_text(endpoint, options):
        return Answer(Reading.TEXT)
    if shape.path is ResultPath.OBJECT:
        return Answer(Reading.JSON, _several(endpoint, name, reader))
    if shape.path is ResultPath.SCALAR:
        return _scalar(endpoint)
    row = _row(endpoint, shape, f"{name}Response", reader)
    return Answer(Reading.JSON, ListOf(row) if shape.is_set and not requested.single else row)


def _scalar(endpoint: Endpoint) -> Answer:
    columns = endpoint.shape.columns
    result = named_shape(columns[0].column.type_name if columns else endpoint.routine.return_type_name)
    if isinstance(result, ListOf):
        return Answer(Reading.JSON, JSON if result.element == JSON else result)
    return Answer(Reading.JSON if result == JSON else Reading.TEXT, result)


def _row(endpoint: Endpoint, shape: ResultShape, name: str, reader: ShapeReader) -> Shape:
    if shape.named:
        return reader.rows(shape, name)
    if shape.columns:
        column = shape.columns[0]
        return exact(reader.column(column, shape, column.key.decode()), column.column.constraints)
    routine = endpoint.routine
    return exact(reader.value(routine.return_type_oid, routine.return_type_name, routine.name), shape.constraints)


def _several(endpoint: Endpoint, name: str, reader: ShapeReader) -> Row:
    """Return the shape of the response of a file with several statements (clients-23): a field for each statement that
    has a key. name: of the function, from which the names of the types are derived."""
    fields = []
    for part in endpoint.shape.parts:
        if part.key is not None:
            key = part.key.decode()
            called = f"{name}{upper_first(key)}Result"
            item = INTEGER if part.shape.path is ResultPath.VOID else _row(endpoint, part.shape, called, reader)
            listed = part.shape.path is not ResultPath.VOID and not part.single
            fields.append(RowField(key, ListOf(item) if listed else item))
    return Row(tuple(fields), f"{name}Response")


def is_plain(shape: Shape, *scalars: Scalar) -> bool:
    return isinstance(shape, Plain) and shape.scalar in scalars
