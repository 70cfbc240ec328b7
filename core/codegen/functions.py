"""One endpoint as a TypeScript function: its request, result and URL (clients-14 to clients-22)."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from rowcall.core.catalogue.catalog import TypeInfo
from rowcall.core.catalogue.value_constraints import ValueConstraints
from rowcall.core.codegen.automatic import is_optional
from rowcall.core.codegen.client_parameters import (
    SEGMENT,
    accepts_uploads,
    client_parameters,
    is_merge_patch,
    parameter_placement,
    reads_null_as_word,
    returns_bytes,
    returns_response,
    returns_text,
    writes_null_as_word,
)
from rowcall.core.codegen.names import access, as_name_part, member, string_literal
from rowcall.core.codegen.options import ClientCodeOptions
from rowcall.core.codegen.types import (
    UPLOADED,
    Interfaces,
    exact_type,
    is_date,
    kind_type,
    or_null,
    plain_type,
    property_text,
    rows_of,
)
from rowcall.core.endpoint.capabilities import ClientCode, NoticeLevel
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultPath, ResultShape, ValueKind
from rowcall.core.events.stream_path import client_stream_path
from rowcall.core.queryable.language import RESERVED

_NO_ANNOTATIONS = ClientCode()


class Reading(enum.Enum):
    """How the body of a response is read: an expression. For those in `_NULLABLE`, it is an expression of the value of
    a `text` that is not NULL."""

    NOTHING = ""
    TEXT = "await response.text()"
    NUMBER = "Number(text)"
    BOOLEAN = 'text === "t"'
    DATE = "new Date(text)"
    JSON_OR_NULL = "JSON.parse(text)"
    """JSON, or an empty body for NULL, for a row that is missing, and for a call that a STRICT routine skips."""
    JSON = "await response.json()"
    RESPONSE = "response"


_NULLABLE = (Reading.NUMBER, Reading.BOOLEAN, Reading.DATE, Reading.JSON_OR_NULL)


@dataclass(frozen=True, slots=True)
class Member:
    """A property of the interface of a request. type: in TypeScript. optional: requests may leave it out."""

    name: str
    """Name in JSON and in query strings."""
    type: str
    optional: bool
    parameter: EndpointParameter
    any_json: bool = False
    """Its value is JSON of any kind, or an array of such values, instead of texts."""

    @property
    def declaration(self) -> str:
        return property_text(self.name, self.type, self.parameter.constraints, optional=self.optional)

    @property
    def brief(self) -> str:
        """The declaration of the property, without its comment."""
        return property_text(
            self.name, self.type, replace(self.parameter.constraints, text=None), optional=self.optional
        )

    @property
    def read(self) -> str:
        return f"request{access(self.name)}"


@dataclass(slots=True)
class ClientFunction:
    """An endpoint as a function of a TypeScript or JavaScript client.

    members: properties of its request. cast: the parsed JSON has to be cast to `result`. status: the function returns
    the HTTP status with the value. parse_url, parse_request: it has a parameter with which its caller changes the URL
    or the request. export_url: a second function, which returns the URL, is exported. url_only: only the latter is
    generated. hooked: it may get hooks, as no annotation excludes them. upload: the endpoint accepts files.
    """

    endpoint: Endpoint
    name: str
    request: str | None
    """Name of the interface of its request; None: there are no members."""
    members: list[Member]
    result: str
    """As declared: `number`, `IFindParcelsResponse[]`, `void`."""
    reading: Reading
    cast: bool
    status: bool
    parse_url: bool
    parse_request: bool
    export_url: bool
    url_only: bool
    hooked: bool
    upload: bool
    events: str | None
    """Path of its event stream; None: it opens none."""
    pages_name: str = ""
    """Name of the function that iterates over its pages; empty: it has none."""
    url_name: str = ""
    """Name of the function that returns its URL."""
    source_name: str = ""
    """Name of the function that opens its event stream."""
    query: list[Member] = field(default_factory=list)
    """Members in the query string."""
    excluded: list[Member] = field(default_factory=list)
    """Members outside the query string of a request whose other members are in it."""
    body: Member | None = None
    """The member whose value is the whole body; None: there is none."""
    json_body: bool = False
    """The members are a JSON body."""

    @property
    def returned(self) -> str:
        """Type of the value of the promise that the function returns."""
        if not self.status or self.reading is Reading.RESPONSE:
            return self.result
        if self.result == "void":
            return "{status: number, error: ApiError | undefined}"
        return f"ApiResult<{self.result}>"

    @property
    def read_body(self) -> str:
        """The expression that reads the body of the response."""
        if self.reading not in _NULLABLE:
            return self.reading.value
        null = 'text === "" || text === "NULL"' if reads_null_as_word(self.endpoint) else 'text === ""'
        return f"await response.text().then(text => {null} ? null : {self.reading.value})"

    @property
    def has_placeholders(self) -> bool:
        return any(item.parameter.path for item in self.members)

    @property
    def address_needs_request(self) -> bool:
        return bool(self.query) or self.has_placeholders

    def address(self) -> str:
        """Return the TypeScript expression whose value is the URL of a call."""
        path = self.endpoint.path
        if not self.has_placeholders:
            url = f"baseUrl + {string_literal(SEGMENT.sub('', path))}"
        else:
            by_segment = {item.parameter.segment: item for item in self.members if item.parameter.path}
            text = path.replace("\\", "\\\\").replace("`", "\\`")
            url = "`${baseUrl}" + SEGMENT.sub(lambda match: _placeholder(by_segment.get(match[1]), match), text) + "`"
        return url + self._query()

    def _query(self) -> str:
        if not self.query:
            return ""
        values = "request" if not self.excluded else f"({self._rest()})(request)"
        if self.has_json_query:
            values = f"jsonAsText({values}, {self._json_keys(array=False)}, {self._json_keys(array=True)})"
        return f" + parseQuery({f'nullAsWord({values})' if writes_null_as_word(self.endpoint) else values})"

    @property
    def has_json_query(self) -> bool:
        """Whether values in the query string have to be converted to JSON text."""
        return any(item.any_json for item in self.query)

    def _json_keys(self, *, array: bool) -> str:
        """Return the array of the names of the members whose values are JSON, or with `array` arrays of JSON."""
        names = (item.name for item in self.query if item.any_json and item.parameter.array == array)
        return f"[{', '.join(map(string_literal, names))}]"

    def _rest(self) -> str:
        """Return the function that removes the excluded members from a request."""
        names = ", ".join(f"[{string_literal(item.name)}]: _{number}" for number, item in enumerate(self.excluded, 1))
        return f"({{ {names}, ...rest }}) => rest"


def _placeholder(member: Member | None, match: re.Match[str]) -> str:
    if member is None:
        return ""
    # Numbers and booleans need no encoding.
    value = member.read if member.type in ("number", "boolean") else f"encodeURIComponent(String({member.read}))"
    return f'${{{member.read} != null ? {value} : ""}}' if match[2] else f"${{{value}}}"


def client_function(
    endpoint: Endpoint,
    name: str,
    types: Mapping[int, TypeInfo],
    interfaces: Interfaces,
    options: ClientCodeOptions,
) -> ClientFunction:
    """Return the function for an endpoint, and add the interfaces of its request and result to `interfaces`. name: of
    the function. types: those of the endpoint's database, by oid.

    `url_name`, `pages_name` and `source_name` are empty: the caller sets them once all functions of the file have
    names.
    """
    requested = endpoint.options.client_code or _NO_ANNOTATIONS
    url_only = bool(requested.url_only)
    members = list(_members(endpoint, interfaces))
    request = f"I{as_name_part(name)}Request" if members else None
    if request is not None:
        request = interfaces.model(request, [item.declaration for item in members])
    upload = accepts_uploads(endpoint)
    result, reading, cast = (
        ("void", Reading.NOTHING, False)
        if url_only
        else _result(endpoint, f"I{as_name_part(name)}Response", types, interfaces, upload=upload)
    )
    if endpoint.skips_null_calls and reading is Reading.JSON:
        result, reading = or_null(result), Reading.JSON_OR_NULL
    path = client_stream_path(endpoint, NoticeLevel(options.event_level.upper()))
    function = ClientFunction(
        endpoint=endpoint,
        name=name,
        request=request,
        members=members,
        result=result,
        reading=reading,
        cast=cast,
        status=_value_or(requested.status_code, options.status_code),
        parse_url=_value_or(requested.parse_url, options.parse_url),
        parse_request=_value_or(requested.parse_request, options.parse_request),
        export_url=url_only or _value_or(requested.export_url, options.export_urls),
        url_only=url_only,
        hooked=requested.hooks is not False,
        upload=upload,
        events=path if requested.events is not False and not url_only else None,
    )
    _distribute(function)
    return function


def _value_or(stated: bool | None, default: bool) -> bool:
    """Return what the comment sets, or the default if it sets nothing."""
    return default if stated is None else stated


def _distribute(function: ClientFunction) -> None:
    members = function.members
    values = parameter_placement(function.endpoint, [item.parameter for item in members])
    function.query = [members[index] for index in values.query]
    function.excluded = [members[index] for index in values.excluded]
    function.body = None if values.body is None else members[values.body]
    function.json_body = values.json_body


def _members(endpoint: Endpoint, interfaces: Interfaces) -> Iterator[Member]:
    options = interfaces.options
    for parameter in client_parameters(endpoint, options):
        kind = kind_type(parameter.kind, options.json_type, array=parameter.array, exact=options.exact)
        if parameter.of_query and parameter.api_name not in RESERVED:
            kind = interfaces.filters()
        if is_merge_patch(endpoint, parameter):
            kind = "Record<string, unknown>"
            parameter = replace(parameter, constraints=replace(parameter.constraints, never_null=True))
        any_json = parameter.kind is ValueKind.JSON and options.json_type != "string" and not parameter.of_query
        yield Member(parameter.api_name, kind, is_optional(parameter), parameter, any_json)


def _result(
    endpoint: Endpoint, name: str, types: Mapping[int, TypeInfo], interfaces: Interfaces, *, upload: bool
) -> tuple[str, Reading, bool]:
    """Return the type of the result, how the body is read, and whether the parsed JSON has to be cast to the type.
    name: of the interface that is added to `interfaces` if the result needs one. upload: the endpoint accepts files."""
    shape, requested = endpoint.shape, endpoint.options
    void = requested.void or requested.logout or shape.path is ResultPath.VOID
    if returns_response(endpoint):
        return "Response", Reading.RESPONSE, False
    if requested.job is not None:
        return "{id: string, state: string}", Reading.JSON, True
    if requested.mail is not None:
        return "void", Reading.NOTHING, False
    if requested.issued_token is not None:
        return "any", Reading.JSON, True
    if requested.login:
        return "string", Reading.TEXT, False
    if void:
        return "void", Reading.NOTHING, False
    if returns_bytes(endpoint, interfaces.options):
        return "Response", Reading.RESPONSE, False
    if upload:
        return f"{interfaces.model(name, UPLOADED, mergeable=False)}[]", Reading.JSON, True
    if returns_text(endpoint, interfaces.options):
        return "string", Reading.TEXT, False
    if shape.path is ResultPath.OBJECT:
        return _several(endpoint, name, types, interfaces), Reading.JSON, True
    if shape.path is ResultPath.SCALAR:
        return _scalar(endpoint, interfaces.options)
    type_text = _row(endpoint, shape, name, types, interfaces)
    if endpoint.may_lack_row:
        return or_null(type_text), Reading.JSON_OR_NULL, True
    return (rows_of(type_text) if shape.is_set and not requested.single else type_text), Reading.JSON, True


def _scalar(endpoint: Endpoint, options: ClientCodeOptions) -> tuple[str, Reading, bool]:
    type_name = endpoint.routine.return_type_name
    if endpoint.shape.columns:
        type_name = endpoint.shape.columns[0].column.type_name
    result = plain_type(type_name, "any", exact=options.exact)
    if result.endswith("[]"):
        kind = "any" if result.startswith("any") else result
        return or_null(kind), Reading.JSON_OR_NULL, False
    if is_date(type_name):
        return or_null("Date"), Reading.DATE, False
    readings = {"number": Reading.NUMBER, "boolean": Reading.BOOLEAN, "any": Reading.JSON_OR_NULL}
    reading = readings.get(result)
    # NULL and an empty text are the same empty body.
    return (result, Reading.TEXT, False) if reading is None else (or_null(result), reading, False)


def _row(
    endpoint: Endpoint, shape: ResultShape, name: str, types: Mapping[int, TypeInfo], interfaces: Interfaces
) -> str:
    """Return the type of one row. name: of the interface that is added to `interfaces` if the row has named columns."""
    if shape.named:
        return interfaces.model(name, interfaces.columns(shape, types))
    if shape.columns:
        column = shape.columns[0]
        kind, constraints = interfaces.column(column, shape, types, column.key.decode()), column.column.constraints
    else:
        routine, constraints = endpoint.routine, shape.constraints
        kind = interfaces.value(routine.return_type_oid, routine.return_type_name, routine.name, types)
    value = exact_type(kind, constraints)
    return _nullable(value, constraints) if interfaces.options.exact else value


def _several(endpoint: Endpoint, name: str, types: Mapping[int, TypeInfo], interfaces: Interfaces) -> str:
    """Add the interface of the result of a file with several statements (clients-23), a member for each statement that
    has a key, and return the name of the interface. name: the preferred one."""
    members = []
    for part in endpoint.shape.parts:
        if part.key is not None:
            key = member(part.key.decode())
            members.append(f"{key}: {_part(part.shape, types, interfaces, single=part.single)}")
    return interfaces.model(name, members, mergeable=False)


def _part(shape: ResultShape, types: Mapping[int, TypeInfo], interfaces: Interfaces, *, single: bool) -> str:
    if shape.path is ResultPath.VOID:
        return "number"
    columns = [
        (
            member(item.key.decode()),
            _nullable(
                exact_type(interfaces.column(item, shape, types), item.column.constraints), item.column.constraints
            ),
        )
        for item in shape.columns
    ]
    row = f"{{ {', '.join(f'{key}: {kind}' for key, kind in columns)} }}" if shape.named else columns[0][1]
    return or_null(row) if single else rows_of(row)


def _nullable(type_text: str, constraints: ValueConstraints) -> str:
    return type_text if constraints.never_null else or_null(type_text)
