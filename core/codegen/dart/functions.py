"""The text of a function of a Dart client (clients-28, clients-29)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.codegen.calls import Argument, Call, Reading
from rowcall.core.codegen.client_parameters import SEGMENT, reads_null_as_word, writes_null_as_word
from rowcall.core.codegen.comments import Definitions, definition_lines
from rowcall.core.codegen.dart.models import SUBSCRIPTION, Models
from rowcall.core.codegen.dart.names import escape_literal, field_name, literal
from rowcall.core.codegen.names import Names, upper_first
from rowcall.core.codegen.options import DartOptions
from rowcall.core.codegen.shapes import JSON, TEXT, Row, Shape
from rowcall.core.endpoint.endpoint import ResultPath

_BODY = "utf8.decode(response.bodyBytes)"
_NOTES = {
    "request": "the values of the request",
    "files": "the files to upload",
    "onMessage": "is called with each message of the event stream",
    "id": "of the execution; generated if it is missing",
    "closeAfterMs": "milliseconds after which the event stream is closed",
    "awaitConnectionMs": "milliseconds to wait before the request is sent",
    "onError": "is called if the event stream is refused or fails",
    "parseUrl": "may change the URL",
    "parseRequest": "may change the request",
    "progress": "is called with the number of sent bytes and the number of all bytes",
    "xsrfToken": "goes into a header of the request",
}


@dataclass(frozen=True, slots=True)
class DartFunction:
    """A function of a Dart client, with the names of its request class and of the functions that belong to it."""

    call: Call
    request: str | None
    """Name of the class of its request; None: it has no arguments."""
    value: str
    """Result type without the status: `List<FindParcelsResponse>`, `void`."""
    url: str
    """Name of the function that returns its URL; empty: there is none."""
    source: str
    """Name of the function that opens its event stream, public or not; empty: there is none."""

    @classmethod
    def of(cls, call: Call, models: Models, names: Names) -> DartFunction:
        """Return the function for a call. Adds the models of its request and response to `models`, and assigns names of
        further functions with `names`."""
        name = upper_first(call.name).rstrip("_")
        request = models.request(f"{name}Request", call.arguments) if call.arguments else None
        answer = call.answer
        value = {Reading.NOTHING: "void", Reading.RESPONSE: "http.Response"}.get(answer.reading, "")
        if answer.reading is Reading.FILES:
            value = f"List<{models.upload_metadata(f'{name}Response')}>{'?' if call.endpoint.skips_null_calls else ''}"
        url = names.assign(f"{call.name}Url") if call.export_url else ""
        source = names.assign(f"create{upper_first(call.name)}EventSource") if call.events is not None else ""
        return cls(call, request, value or _value_type(call, models), url, source)

    def result_type(self, options: DartOptions) -> str:
        """Return the type of the result, with the status if the function returns it."""
        return f"{options.result_name}<{self.value}>" if self.call.has_status else self.value


def address(function: DartFunction, models: Models) -> str:
    """Return the Dart expression whose value is the URL of a call, including the query string."""
    call = function.call
    path, last = "", 0
    for match in SEGMENT.finditer(call.endpoint.path):
        path += escape_literal(call.endpoint.path[last : match.start()])
        response = call.path_values.get(match[1])
        if response is not None:
            # An optional value that is null is not sent.
            word = "" if response.optional else _null_word(call)
            path += f"${{_segment({_value(response, models)}{word})}}"
        last = match.end()
    path += escape_literal(call.endpoint.path[last:])
    return f"'$baseUrl{path}{_query(call)}'"


def _query(call: Call) -> str:
    if not call.placement.query:
        return ""
    without = "".join(f"..remove({literal(call.arguments[index].key)})" for index in call.placement.excluded)
    sent = [call.arguments[index] for index in call.placement.query]
    json = ", ".join(literal(item.key) for item in sent if item.shape == JSON)
    word = _null_word(call) or (", ''" if json else "")
    return f"${{_query(request.toJson(){without}{word}{f', {{{json}}}' if json else ''})}}"


def _null_word(call: Call) -> str:
    """Return the argument of `_query` and `_segment` that says how null is written; empty: as an empty value."""
    return ", 'null'" if writes_null_as_word(call.endpoint) else ""


def _value(value: Argument, models: Models) -> str:
    return models.to_json(value.shape, f"request.{field_name(value.key)}", null=value.nullable)


def url_text(function: DartFunction, models: Models) -> str:
    """Return the source of the function that returns the URL of a call. function: one that has such a function."""
    taken = f"{function.request} request" if function.call.address_needs_request else ""
    return f"String {function.url}({taken}) =>\n    {address(function, models)};"


def source_text(function: DartFunction, options: DartOptions) -> str:
    """Return the source of the function that opens the event stream of an endpoint. function: one that has a stream."""
    name = function.source if options.export_sources else f"_{function.source}"
    path = escape_literal(function.call.events or "")
    headers = ", ".join(f"{name}: {value}" for name, value in _with_custom_headers({}, options).items())
    return f"""{SUBSCRIPTION} {name}(
  void Function(String message) onMessage, {{
  String id = '',
  void Function(Object error)? onError,
}}) =>
    {SUBSCRIPTION}._('$baseUrl{path}?$id', onMessage, onError, {{{headers}}});"""


def function_text(function: DartFunction, models: Models, definitions: Definitions, options: DartOptions) -> str:
    """Return the source of a function with its comment. models: those of the file. definitions: of routines,
    for the comment."""
    positional, named = _arguments(function, options)
    names = [text.rpartition(" ")[2] for text in positional]
    names += [text.partition(" = ")[0].rpartition(" ")[2] for text in named]
    lines = [*_comment(function, names, definitions, options)]
    start = f"Future<{function.result_type(options)}> {function.call.name}("
    if named:
        # Each positional parameter has a line of its own, the last one with the opening brace.
        listed = [f"  {item}," for item in positional]
        if listed:
            lines += [start, *listed[:-1], f"{listed[-1]} {{"]
        else:
            lines.append(f"{start}{{")
        lines += [*(f"  {item}," for item in named), "}) async {"]
    else:
        lines.append(f"{start}{', '.join(positional)}) async {{")
    lines += [f"  {line}" for line in _body(function, models, options)]
    return "\n".join([*lines, "}"])


def _arguments(function: DartFunction, options: DartOptions) -> tuple[list[str], list[str]]:
    call = function.call
    positional = ["List<http.MultipartFile> files"] if call.upload else []
    if function.request is not None:
        positional.append(f"{function.request} request")
    named = []
    if call.events is not None:
        named += ["void Function(String message)? onMessage", "String? id"]
        named += ["int closeAfterMs = 1000", "int? awaitConnectionMs = 0", "void Function(Object error)? onError"]
    if call.parse_url:
        named.append("String Function(String url)? parseUrl")
    if call.parse_request:
        kind = "http.MultipartRequest" if call.upload else "http.Request"
        named.append(f"{kind} Function({kind} request)? parseRequest")
    if call.upload:
        named.append("void Function(int loaded, int total)? progress")
        if options.xsrf_header:
            named.append("String? xsrfToken")
    return positional, named


def _comment(function: DartFunction, names: list[str], definitions: Definitions, options: DartOptions) -> Iterator[str]:
    endpoint = function.call.endpoint
    routine = endpoint.routine
    blocks: list[list[str]] = [[*definition_lines(endpoint, definitions, options.comment)]]
    if options.comment != "None" and options.comments:
        blocks.append([*endpoint.prose])
    blocks.append([f"[{name}] - {_NOTES[name]}" for name in names if name in _NOTES])
    blocks.append([f"Returns `{function.result_type(options)}`."])
    if routine.kind is not RoutineKind.FILE:
        blocks.append([f"See {routine.kind.value.upper()} {routine.schema}.{routine.name}"])
    shown = [block for block in blocks if block]
    for number, block in enumerate(shown):
        if number:
            yield "///"
        # A default in SQL may contain line breaks. Each line needs its own slashes.
        yield from (f"/// {line}".rstrip() for text in block for line in text.splitlines() or [""])


# --- the body -----------------------------------------------------------------------------------------------------


def _body(function: DartFunction, models: Models, options: DartOptions) -> Iterator[str]:
    if function.call.events is None:
        yield from _request_statements(function, models, options)
        return
    create = function.source if options.export_sources else f"_{function.source}"
    yield "final executionId = id ?? _executionId();"
    yield f"{SUBSCRIPTION}? subscription;"
    yield "if (onMessage != null) {"
    yield f"  subscription = {create}(onMessage, id: executionId, onError: onError);"
    yield "  if (awaitConnectionMs != null) {"
    yield "    await Future<void>.delayed(Duration(milliseconds: awaitConnectionMs));"
    yield "  }"
    yield "}"
    yield "try {"
    yield from (f"  {line}" for line in _request_statements(function, models, options))
    yield "} finally {"
    yield "  if (subscription != null) {"
    yield "    Timer(Duration(milliseconds: closeAfterMs), subscription.close);"
    yield "  }"
    yield "}"


def _request_statements(function: DartFunction, models: Models, options: DartOptions) -> Iterator[str]:
    call = function.call
    url = _url(function, models)
    if call.parse_url:
        yield f"final url = {url};"
        yield "final uri = Uri.parse(parseUrl == null ? url : parseUrl(url));"
    else:
        yield f"final uri = Uri.parse({url});"
    bare = call.answer.reading is Reading.NOTHING and not call.has_status and not call.upload
    start = f"{'' if bare else 'final response = '}await {'_upload' if call.upload else '_send'}("
    value = [*_call_arguments(function, models, options)]
    if len(value) == 2:
        yield f"{start}{' '.join(value).rstrip(',')});"
    else:
        yield start
        yield from (f"  {line}" for line in value)
        yield ");"
    if bare:
        return
    if call.has_status:
        yield from _with_status(function, models, options)
        return
    if call.upload and call.answer.reading is not Reading.RESPONSE:
        yield "if (response.statusCode < 200 || response.statusCode >= 300) {"
        yield f"  throw http.ClientException({_BODY}, uri);"
        yield "}"
    if call.answer.reading is not Reading.NOTHING:
        yield f"return {_read(function, models)};"


def _url(function: DartFunction, models: Models) -> str:
    call = function.call
    if call.export_url:
        return f"{function.url}({'request' if call.address_needs_request else ''})"
    return address(function, models)


def _call_arguments(function: DartFunction, models: Models, options: DartOptions) -> Iterator[str]:
    call = function.call
    if call.upload:
        yield "uri,"
        yield "files,"
    else:
        yield f"{literal(call.endpoint.method)},"
        yield "uri,"
    headers = [*_headers(function, options)]
    if headers:
        yield "headers: {"
        yield from (f"  {line}," for line in headers)
        yield "},"
    if call.upload:
        yield "progress: progress,"
    elif call.placement.json_body:
        yield "body: jsonEncode(request.toJson()),"
    elif call.body is not None:
        value = _value(call.body, models)
        text = value if models.type_of(call.body.shape) == "String" else f"{value}?.toString()"
        yield f"body: {f'jsonEncode({value})' if call.body.shape == JSON else text},"
    if call.parse_request:
        yield "parseRequest: parseRequest,"


def _headers(function: DartFunction, options: DartOptions) -> Iterator[str]:
    call = function.call
    headers: dict[str, str] = {}
    if call.placement.json_body:
        headers["'Content-Type'"] = "'application/json'"
    if call.events is not None:
        headers[literal(options.execution_header)] = "executionId"
    yield from (f"{name}: {value}" for name, value in _with_custom_headers(headers, options).items())
    if call.upload and options.xsrf_header:
        yield f"if (xsrfToken != null) {literal(options.xsrf_header)}: xsrfToken"


def _with_custom_headers(headers: dict[str, str], options: DartOptions) -> dict[str, str]:
    """Add the configured headers to those of a request, literal of the name → expression, and return them."""
    for name, value in options.headers.items():
        if value is None:
            continue
        quoted = name if name[:1] in ("'", '"') else literal(name)
        known = next((item for item in headers if item.strip("'\"").lower() == quoted.strip("'\"").lower()), quoted)
        headers.pop(known, None)
        if value:
            headers[quoted] = value
    return headers


def _with_status(function: DartFunction, models: Models, options: DartOptions) -> Iterator[str]:
    yield f"return {function.result_type(options)}("
    yield "  status: response.statusCode,"
    if function.call.answer.reading is not Reading.NOTHING:
        yield f"  response: _isOk(response) ? {_read(function, models)} : null,"
    yield "  error: _error(response),"
    yield ");"


def _may_be_null(call: Call) -> bool:
    """Return whether a successful response may have no value: `single` without a row, a scalar that is NULL, or a call
    that a STRICT routine skips."""
    if call.answer.reading not in (Reading.JSON, Reading.TEXT) or call.endpoint.options.login:
        return False
    endpoint = call.endpoint
    return endpoint.may_lack_row or endpoint.skips_null_calls or endpoint.shape.path is ResultPath.SCALAR


def _value_type(call: Call, models: Models) -> str:
    kind = models.type_of(call.answer.shape)
    # A text that is NULL has the same empty body as an empty text.
    is_text = kind == "String" and call.answer.reading is Reading.TEXT
    nullable = _may_be_null(call) and kind != "dynamic" and not is_text and not kind.endswith("?")
    return f"{kind}?" if nullable else kind


def _read(function: DartFunction, models: Models) -> str:
    read = _read_value(function, models)
    nullable = function.value.endswith("?") or (function.value == "dynamic" and _may_be_null(function.call))
    if not nullable:
        return read
    is_null = f"['', 'NULL'].contains({_BODY})" if reads_null_as_word(function.call.endpoint) else f"{_BODY}.isEmpty"
    return f"{is_null} ? null : {read}"


def _read_value(function: DartFunction, models: Models) -> str:
    answer = function.call.answer
    if answer.reading is Reading.RESPONSE:
        return "response"
    decoded = f"jsonDecode({_BODY})"
    if answer.reading is Reading.FILES:
        name = function.value.removeprefix("List<").removesuffix("?").removesuffix(">")
        return f"({decoded} as List<dynamic>).map((item) => {name}.fromJson(item as Map<String, dynamic>)).toList()"
    if answer.reading is Reading.JSON:
        return models.from_json(answer.shape, decoded, null=function.value.endswith("?"))
    return _from_text(answer.shape, models)


def _from_text(shape: Shape, models: Models) -> str:
    if shape == TEXT or isinstance(shape, Row):
        return _BODY
    if models.is_date(shape):
        return f"DateTime.tryParse({_BODY})"
    kind = models.type_of(shape)
    if kind == "bool":
        return f"{_BODY} == 't'"
    return f"{kind}.parse({_BODY})" if kind in ("int", "double") else _BODY


def needs_dart_convert(function: DartFunction) -> bool:
    """Return whether the text of the function itself needs `dart:convert`."""
    call = function.call
    if call.url_only:
        return False
    json_body = call.body is not None and call.body.shape == JSON
    return call.placement.json_body or json_body or call.answer.reading not in (Reading.NOTHING, Reading.RESPONSE)
