"""The text of a method of a Python client, synchronous or asynchronous."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rowcall.core.codegen.calls import Argument, Call, Reading
from rowcall.core.codegen.client_parameters import SEGMENT, reads_null_as_word, takes_effect_once, writes_null_as_word
from rowcall.core.codegen.comments import Definitions, definition_lines
from rowcall.core.codegen.names import free
from rowcall.core.codegen.options import ClientOptions
from rowcall.core.codegen.python.models import Models
from rowcall.core.codegen.python.names import snake_case
from rowcall.core.codegen.shapes import INTEGER, JSON, TEXT, ListOf, Plain, Row, RowField, Scalar, Shape
from rowcall.core.endpoint.endpoint import ResultPath

UPLOADED = Row(
    tuple(
        RowField(name, shape, nullable=False)
        for name, shape in (
            ("type", TEXT),
            ("fileName", TEXT),
            ("contentType", TEXT),
            ("size", INTEGER),
            ("success", Plain(Scalar.BOOLEAN)),
            ("status", TEXT),
        )
    ),
    "UploadedFile",
)
_FROM_TEXT = {"int": "int(response.text)", "float": "float(response.text)", "bool": 'response.text == "t"'}


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a Python client. arguments: pairs (name in Python, argument). returned: type annotation of the
    result."""

    call: Call
    name: str
    arguments: tuple[tuple[str, Argument], ...]
    returned: str
    empty: bool
    """A successful response may have no body."""
    stream: str
    """Name of the method that yields its events; empty: there is none."""

    @classmethod
    def of(cls, call: Call, name: str, models: Models, methods: set[str]) -> Method:
        """Return the method for a call. Adds the models that it needs to `models`. name: of the method. methods: names
        that methods of the class have; that of a method for the event stream is added."""
        taken = {"self", "files", "path", "response", "result", "httpx", "json", "query"}
        arguments = tuple((free(snake_case(item.key), taken), item) for item in call.arguments)
        for _, item in arguments:
            models.argument_type(item.shape, null=item.nullable)
        answer = call.answer
        empty = call.endpoint.skips_null_calls
        stream = free(f"{name}_events", methods) if call.events is not None else ""
        match answer.reading:
            case Reading.NOTHING:
                return cls(call, name, arguments, "None", empty, stream)
            case Reading.RESPONSE:
                return cls(call, name, arguments, "httpx.Response", empty, stream)
            case Reading.FILES:
                listed = models.type_of(ListOf(UPLOADED))
                return cls(call, name, arguments, f"{listed} | None" if empty else listed, empty, stream)
        kind = models.type_of(answer.shape)
        empty |= call.endpoint.may_lack_row
        # A scalar that is NULL has an empty body, and so has an empty text.
        empty |= call.endpoint.shape.path is ResultPath.SCALAR and kind != "str"
        return cls(call, name, arguments, f"{kind} | None" if empty and kind != "Any" else kind, empty, stream)

    def argument(self, value: Argument) -> str:
        """Return the name of an argument in Python. value: one of the method's own `Argument` objects."""
        return next(name for name, item in self.arguments if item is value)


def method_text(method: Method, models: Models, definitions: Definitions, options: ClientOptions, wait: str) -> str:
    """Return the source of a method and of the method for its event stream. models: those of the file. definitions: of
    routines, for the docstring. wait: `await ` for the asynchronous client, otherwise empty."""
    lines = [*_head(method, models, "async " if wait else ""), *_docstring_lines(method, definitions, options)]
    lines += (f"    {line}" for line in _body(method, wait))
    if method.call.events is not None:
        lines += ["", *_events(method, wait)]
    return "\n".join(f"    {line}".rstrip() for line in lines)


def _head(method: Method, models: Models, start: str) -> Iterator[str]:
    listed = ["files: Sequence[File]"] if method.call.upload else []
    # Parameters are keyword-only, so required ones may follow optional ones.
    if method.arguments:
        listed.append("*")
    for name, item in method.arguments:
        kind = models.argument_type(item.shape, null=item.nullable)
        listed.append(f"{name}: {kind} | Unset = UNSET" if item.optional else f"{name}: {kind}")
    if not listed:
        yield f"{start}def {method.name}(self) -> {method.returned}:"
        return
    yield f"{start}def {method.name}("
    yield "    self,"
    yield from (f"    {item}," for item in listed)
    yield f") -> {method.returned}:"


def _docstring_lines(method: Method, definitions: Definitions, options: ClientOptions) -> Iterator[str]:
    endpoint = method.call.endpoint
    lines = [f"{endpoint.method} {endpoint.path}"]
    if options.comments and endpoint.prose:
        lines += ["", *endpoint.prose]
    if defined := [*definition_lines(endpoint, definitions, options.comment)]:
        lines += ["", *defined]
    first, *others = _in_docstring("\n".join(lines)).splitlines()
    if not others:
        yield f'    """{first}"""'
        return
    yield f'    """{first}'
    yield from (f"    {line}".rstrip() for line in others)
    yield '    """'


def _in_docstring(text: str) -> str:
    """Escape a text for a docstring, which a quote at its end or three quotes would end."""
    return re.sub(r'"(?="|\Z)', r"\"", text.replace("\\", "\\\\"))


def _body(method: Method, wait: str) -> Iterator[str]:
    call = method.call
    send = "_send_once" if takes_effect_once(call.endpoint) else "_send"
    if call.answer.reading is Reading.RESPONSE:
        yield f"return {wait}self.{send}({', '.join(_request_arguments(method))})"
        return
    sent = f"_require_success({wait}self.{send}({', '.join(_request_arguments(method))}))"
    if call.answer.reading is Reading.NOTHING:
        yield sent
        return
    yield f"response = {sent}"
    if method.empty:
        word = reads_null_as_word(call.endpoint)
        yield 'if response.content in (b"", b"NULL"):' if word else "if not response.content:"
        yield "    return None"
    if call.answer.reading is Reading.TEXT:
        kind = method.returned.removesuffix(" | None")
        yield f"return {_FROM_TEXT.get(kind, 'response.text')}"
    else:
        yield f"result: {method.returned} = response.json()"
        yield "return result"


def _request_arguments(method: Method) -> Iterator[str]:
    call = method.call
    yield repr(call.endpoint.method)
    yield _path(method)
    if call.placement.query:
        yield f"query={{{_values(method, call.placement.query)}}}"
    if call.upload:
        yield "files=files"
    elif call.placement.json_body:
        yield f"content=_body({{{_values(method, range(len(call.arguments)), as_text=False)}}})"
        yield 'headers={"Content-Type": "application/json"}'
    elif call.body is not None:
        name = method.argument(call.body)
        yield f"content=_text({_encode_argument(name, call.body.shape)})"
        yield 'headers={"Content-Type": "text/plain"}'


def _values(method: Method, indexes: tuple[int, ...] | range, *, as_text: bool = True) -> str:
    return ", ".join(
        f"{item.key!r}: {_encode_null(method, _encode_argument(name, item.shape)) if as_text else name}"
        for name, item in (method.arguments[index] for index in indexes)
    )


def _encode_null(method: Method, value: str) -> str:
    """Return the expression of a value for the query string or the path. value: expression of the argument."""
    return f"_null_word({value})" if writes_null_as_word(method.call.endpoint) else value


def _encode_argument(name: str, shape: Shape) -> str:
    if shape == ListOf(JSON):
        return f"_jsons({name})"
    return f"_json({name})" if shape == JSON else name


def _path(method: Method) -> str:
    call = method.call
    if not call.path_values:
        return repr(SEGMENT.sub("", call.endpoint.path))
    parts, last = [], 0
    for match in SEGMENT.finditer(call.endpoint.path):
        parts.append(repr(call.endpoint.path[last : match.start()]))
        response = call.path_values.get(match[1])
        if response is not None:
            parts.append(f"_segment({_encode_null(method, method.argument(response))})")
        last = match.end()
    if rest := call.endpoint.path[last:]:
        parts.append(repr(rest))
    return " + ".join(parts)


def _events(method: Method, wait: str) -> Iterator[str]:
    """Yield the lines of the method that opens the endpoint's event stream. wait: `await ` for the asynchronous client,
    otherwise empty."""
    kind = "AsyncIterator" if wait else "Iterator"
    yield f'def {method.stream}(self, id: str = "") -> {kind}[str]:'
    path = _in_docstring(method.call.events or "")
    yield f'    """Yield the messages of the event stream GET {path}. id: of an execution; empty: all."""'
    yield f"    return self._stream({method.call.events!r}, id)"
