"""A function of generated TypeScript or JavaScript as text (clients-18 to clients-25)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rowcall.core.codegen.client_parameters import takes_effect_once
from rowcall.core.codegen.comments import Definitions, comment
from rowcall.core.codegen.functions import ClientFunction, Reading
from rowcall.core.codegen.names import string_literal
from rowcall.core.codegen.options import ClientCodeOptions
from rowcall.core.endpoint.endpoint import ValueKind

_UNANSWERED = (("error", "Network error occurred"), ("abort", "Request aborted"), ("timeout", "Request timed out"))
"""Events of an XMLHttpRequest that ends without a response, and the status texts of the error."""
_WHOLE = "xhr.response.size ? xhr.response : null, {status: xhr.status, statusText: xhr.statusText}"
_FAILED = '!response.ok && response.headers.get("content-length") !== "0"'


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a generated function. type: in TypeScript; empty: it follows from the default. default:
    expression; None: the argument has none."""

    name: str
    type: str
    optional: bool = False
    default: str | None = None

    def text(self, types: bool) -> str:
        default = "" if self.default is None else f" = {self.default}"
        if not types:
            return f"{self.name}{default}"
        if not self.type:
            return f"{self.name}{default}"
        return f"{self.name}{'?' if self.optional else ''}: {self.type}{default}"


PARSE_URL = Argument("parseUrl", "(url: string) => string", default="url => url")
PARSE_REQUEST = Argument("parseRequest", "(request: RequestInit) => RequestInit", default="request => request")
PARSE_UPLOAD = Argument("parseRequest", "(request: XMLHttpRequest) => XMLHttpRequest", default="request => request")
EVENTS = (
    Argument("onMessage", "(message: string) => void", optional=True),
    Argument("id", "string | undefined", default="undefined"),
    Argument("closeAfterMs", "", default="1000"),
    Argument("awaitConnectionMs", "number | undefined", default="0"),
)
FILES = Argument("files", "FileList | null")
PROGRESS = Argument("progress", "(loaded: number, total: number) => void", optional=True)
XSRF = Argument("xsrfToken", "string", optional=True)


def arguments(function: ClientFunction, options: ClientCodeOptions) -> list[Argument]:
    """Return the arguments of a function, without those that its options exclude."""
    request = [] if function.request is None else [Argument("request", function.request)]
    events = EVENTS if function.events is not None else ()
    parse = [PARSE_URL] if function.parse_url else []
    if function.parse_request:
        parse.append(PARSE_UPLOAD if function.upload else PARSE_REQUEST)
    if not function.upload:
        return [*request, *events, *parse]
    xsrf = [XSRF] if options.xsrf_header else []
    return [FILES, *request, *events, *parse, PROGRESS, *xsrf]


def function_text(function: ClientFunction, definitions: Definitions, options: ClientCodeOptions) -> str:
    """Return the text of a function with its comment, after a blank line. definitions: of routines, for the
    comment."""
    taken = arguments(function, options)
    returned = function.returned
    shown = returned
    if function.status and not options.types and returned.startswith("ApiResult<"):
        shown = f"{{status: number, response: {function.result}, error: {options.error_type}}}"
    elif not options.types:
        shown = returned.replace("ApiError | undefined", options.error_type)
    head = comment(function, [item.name for item in taken], shown, definitions, options)
    listed = ",\n".join(f"    {item.text(options.types)}" for item in taken)
    if taken and taken[-1] is PROGRESS:
        listed += ","  # As NpgsqlRest's generator does, so that generated files stay comparable.
    listed = f"\n{listed}\n" if listed else ""
    space = "" if function.upload else " "
    promise = f"{space}: Promise<{returned}>" if options.types else ""
    body = _upload(function, options) if function.upload else _fetch(function, options)
    code = "".join(f"    {line}\n" if line else "\n" for line in body)
    return f"\n{head}export async function {function.name}({listed}){promise} {{\n{code}}}\n"


def url_builder(function: ClientFunction, options: ClientCodeOptions) -> str:
    """Return the source of the function that returns the URL of a call:
    `export const xUrl = (request: IXRequest) => …;`"""
    if not function.address_needs_request:
        taken = "()"
    else:
        taken = f"(request: {function.request})" if options.types else "request"
    return f"export const {function.url_name} = {taken} => {function.address()};"


def source_builder(function: ClientFunction, options: ClientCodeOptions) -> str:
    """Return the source of the function that opens the event stream of an endpoint."""
    export = "export " if options.export_sources else ""
    taken = '(id: string = "")' if options.types else '(id = "")'
    path = string_literal(f"{function.events}?")
    return f"{export}const {function.source_name} = {taken} => new EventSource(baseUrl + {path} + id);"


def _url(function: ClientFunction) -> str:
    url = function.address()
    if function.export_url:
        url = f"{function.url_name}({'request' if function.address_needs_request else ''})"
    return f"parseUrl({url})" if function.parse_url else url


def _headers(function: ClientFunction, options: ClientCodeOptions) -> list[str]:
    headers: dict[str, str] = {}
    if function.json_body:
        headers["Content-Type"] = '"application/json"'
    if function.events is not None:
        headers[options.execution_header] = "executionId"
    return header_lines(headers, options)


def header_lines(headers: dict[str, str], options: ClientCodeOptions) -> list[str]:
    """Return the headers of a request as properties of an object, with the configured ones. headers: name → expression
    of the others; it is changed."""
    for name, value in options.headers.items():
        known = next((item for item in headers if item.lower() == name.strip("\"'").lower()), name)
        if value is None:
            continue
        if not value:
            headers.pop(known, None)
        else:
            headers[known] = value
    return [f"{name if name[:1] in _QUOTES else string_literal(name)}: {value}" for name, value in headers.items()]


_QUOTES = ("'", '"')


def _body(function: ClientFunction) -> str | None:
    if function.json_body:
        return "JSON.stringify(request)"
    if function.body is None:
        return None
    read = function.body.read
    if function.body.type == "string":
        # `exactOptionalPropertyTypes`: the body of a request cannot be `undefined`.
        return f"{read} ?? null" if function.body.optional else read
    if function.body.parameter.kind is ValueKind.JSON:
        return f"JSON.stringify({read})"
    return f"{read} === null || {read} === undefined ? null : String({read})"


def _request(function: ClientFunction, options: ClientCodeOptions, awaited: str) -> Iterator[str]:
    """Yield the lines of the call of `fetch`, or of `fetchOnce` for an endpoint with idempotency keys.

    awaited: text in front of the call, such as `const response = await `.
    """
    opening, closing = ("parseRequest({", "}));") if function.parse_request else ("{", "});")
    fetch = "fetchOnce" if takes_effect_once(function.endpoint) else "fetch"
    yield f"{awaited}{fetch}({_url(function)}, {opening}"
    yield f'    method: "{function.endpoint.method}",'
    headers = _headers(function, options)
    if headers:
        yield "    headers: {"
        yield from (f"        {line}{'' if line is headers[-1] else ','}" for line in headers)
        yield "    },"
    body = _body(function)
    if body is not None:
        yield f"    body: {body}"
    yield closing


def _fetch(function: ClientFunction, options: ClientCodeOptions) -> Iterator[str]:
    if function.events is None:
        yield from _fetch_statements(function, options)
        return
    yield from _listen(function, options)
    yield "try {"
    yield from (f"    {line}" for line in _fetch_statements(function, options))
    yield from _stop_listening()


def _listen(function: ClientFunction, options: ClientCodeOptions) -> Iterator[str]:
    typed = options.types
    yield "const executionId = id ? id : window.crypto.randomUUID();"
    yield f"let eventSource{': EventSource | undefined' if typed else ''};"
    yield "if (onMessage) {"
    yield f"    eventSource = {function.source_name}(executionId);"
    yield f"    eventSource.onmessage = {'(event: MessageEvent)' if typed else 'event'} => onMessage(event.data);"
    yield "    if (awaitConnectionMs !== undefined) {"
    yield "        await new Promise(resolve => setTimeout(resolve, awaitConnectionMs));"
    yield "    }"
    yield "}"


def _stop_listening() -> Iterator[str]:
    yield "}"
    yield "finally {"
    yield "    if (eventSource) {"
    yield "        const source = eventSource;"
    yield "        setTimeout(() => source.close(), closeAfterMs);"
    yield "    }"
    yield "}"


def _fetch_statements(function: ClientFunction, options: ClientCodeOptions) -> Iterator[str]:
    void = function.reading is Reading.NOTHING
    bare = void and not function.status
    yield from _request(function, options, "await " if bare else "const response = await ")
    if bare:
        return
    if function.reading is Reading.RESPONSE:
        yield "return response;"
        return
    value = function.read_body + (f" as {function.result}" if function.cast and options.types else "")
    if not function.status:
        yield f"return {value};"
        return
    cast = " as ApiError" if options.types else ""
    yield "return {"
    yield "    status: response.status,"
    if not void:
        yield f"    response: response.ok ? {value} : undefined{'!' if options.types else ''},"
    yield f"    error: {_FAILED} ? {options.error_expression}{cast} : undefined"
    yield "};"


def _upload(function: ClientFunction, options: ClientCodeOptions) -> Iterator[str]:
    typed = options.types
    if function.events is not None:
        yield from _listen(function, options)
    indent = ""
    if function.events is not None:
        yield "try {"
        indent = "    "
    kind = f"<{function.returned}>" if typed else ""
    start = "return await" if function.events is not None else "return"
    yield f"{indent}{start} new Promise{kind}((resolve, reject) => {{"
    yield from (f"{indent}    {line}" if line else "" for line in _upload_statements(function, options))
    yield f"{indent}}});"
    if function.events is not None:
        yield from _stop_listening()


def _upload_statements(function: ClientFunction, options: ClientCodeOptions) -> Iterator[str]:
    yield "if (!files || files.length === 0) {"
    yield '    reject(new Error("No files to upload"));'
    yield "    return;"
    yield "}"
    yield f"{'let' if function.parse_request else 'const'} xhr = new XMLHttpRequest();"
    yield "if (progress) {"
    yield '    xhr.upload.addEventListener("progress", event => {'
    yield "        if (event.lengthComputable) {"
    yield "            progress(event.loaded, event.total);"
    yield "        }"
    yield "    });"
    yield "}"
    if function.reading is Reading.RESPONSE:
        yield 'xhr.responseType = "blob";'
    yield "xhr.onload = () => {"
    # What an event handler throws reaches no promise, such as that of a response of a proxy that is no JSON.
    yield "    try {"
    yield from (f"        {line}" for line in _settle_statements(function, options))
    yield "    } catch (error) {"
    yield "        reject(error);"
    yield "    }"
    yield "};"
    for event, text in _UNANSWERED:
        members = f'xhr, status: xhr.status, statusText: xhr.statusText || "{text}", response: xhr.response'
        yield f"xhr.on{event} = () => reject({{{members}}});"
    yield f'xhr.open("POST", {_url(function)});'
    for header in _headers(function, options):
        name, _, value = header.partition(": ")
        yield f"xhr.setRequestHeader({name}, {value});"
    if options.xsrf_header:
        yield "if (xsrfToken) {"
        yield f'    xhr.setRequestHeader("{options.xsrf_header}", xsrfToken);'
        yield "}"
    yield "const formData = new FormData();"
    yield "for (const file of Array.from(files)) {"
    yield '    formData.append("file", file, file.name);'
    yield "}"
    if function.parse_request:
        yield "const parsed = parseRequest(xhr);"
        yield "if (parsed instanceof XMLHttpRequest) {"
        yield "    xhr = parsed;"
        yield "} else {"
        yield '    console.warn("parseRequest gave no XMLHttpRequest; the request is sent as it was");'
        yield "}"
    yield "xhr.send(formData);"


def _settle_statements(function: ClientFunction, options: ClientCodeOptions) -> Iterator[str]:
    """Yield the statements that settle the promise of an upload from its response."""
    if function.reading is Reading.RESPONSE:
        yield f"resolve(new Response({_WHOLE}));"
        return
    yield "if (xhr.status >= 200 && xhr.status < 300) {"
    yield f"    {_resolve_statement(function, options)}"
    yield "} else {"
    yield f"    {_failure_statement(function, options)}"
    yield "}"


def _resolve_statement(function: ClientFunction, options: ClientCodeOptions) -> str:
    cast = f" as {function.result}" if options.types else ""
    if function.reading is Reading.NOTHING:
        return "resolve({status: xhr.status, error: undefined});" if function.status else "resolve();"
    value = "xhr.responseText" if function.reading is Reading.TEXT else f"JSON.parse(xhr.responseText){cast}"
    if function.reading is Reading.JSON_OR_NULL:
        value = f'xhr.responseText === "" ? null : {value}'
    return (
        f"resolve({{status: xhr.status, response: {value}, error: undefined}});"
        if function.status
        else (f"resolve({value});")
    )


def _failure_statement(function: ClientFunction, options: ClientCodeOptions) -> str:
    if not function.status:
        return "reject(new Error(xhr.responseText));"
    cast = " as ApiError" if options.types else ""
    error = f"error: xhr.responseText ? JSON.parse(xhr.responseText){cast} : undefined"
    nothing = (
        "[]" if function.result.removesuffix(" | null").endswith("[]") else f"undefined{'!' if options.types else ''}"
    )
    response = "" if function.reading is Reading.NOTHING else f"response: {nothing}, "
    return f"resolve({{status: xhr.status, {response}{error}}});"


def aliases(options: ClientCodeOptions, *, with_result: bool) -> Iterable[str]:
    """Yield the type declarations `ApiError` and, with `with_result`, `ApiResult`.

    A type that no function uses must be left out, because TypeScript rejects it under `noUnusedLocals`.
    """
    kind = options.error_type.strip().removesuffix("| undefined").strip()
    yield f"type ApiError = {kind};"
    if with_result:
        yield "type ApiResult<T> = {status: number, response: T, error: ApiError | undefined};"


def parse_query(options: ClientCodeOptions) -> str:
    """Return the source of `parseQuery`, which encodes an object as a query string: an empty array as nothing, null as
    `key=`."""
    typed = options.types
    query, strings, unknowns = (": Record<any, any>", ": string[]", ": unknown[]") if typed else ("", "", "")
    return f"""const parseQuery = (query{query}) => {{
    const parts{strings} = [];
    for (const key of Object.keys(query ? query : {{}})) {{
        const values{unknowns} = Array.isArray(query[key]) ? query[key] : [query[key]];
        for (const item of values) {{
            const text = item === null || item === undefined ? "" : encodeURIComponent(String(item));
            parts.push(`${{key}}=${{text}}`);
        }}
    }}
    return "?" + parts.join("&");
}};"""


def null_as_word(*, typed: bool) -> str:
    """Return the source of `nullAsWord`, which replaces null in the values of a query string, and in arrays of them, by
    the word `null`. typed: in TypeScript."""
    kind = "Record<any, any>"
    taken, returned = (f"(query: {kind}): {kind}", ": unknown") if typed else ("(query)", "")
    return f"""const nullAsWord = {taken} => {{
    const word = (value{returned}) => value === null ? "null" : value;
    return Object.fromEntries(Object.entries(query ? query : {{}}).map(([key, value]) =>
        [key, Array.isArray(value) ? value.map(word) : word(value)]));
}};"""


def json_as_text(*, typed: bool) -> str:
    """Return the source of `jsonAsText`, which replaces the values of some keys of a query string, and the elements of
    the arrays of others, by their JSON. Texts are JSON already. typed: in TypeScript."""
    kind, value = ("Record<any, any>", ": unknown") if typed else ("", "")
    taken = f"(query: {kind}, keys: string[], arrays: string[]): {kind}" if typed else "(query, keys, arrays)"
    return f"""const jsonAsText = {taken} => {{
    const json = (value{value}) =>
        value === null || value === undefined || typeof value === "string" ? value : JSON.stringify(value);
    return Object.fromEntries(Object.entries(query ? query : {{}}).map(([key, value]) => [
        key, keys.includes(key) ? json(value) : arrays.includes(key) && Array.isArray(value) ? value.map(json) : value
    ]));
}};"""


def fetch_once(*, typed: bool) -> str:
    """Return the source of `fetchOnce`. typed: in TypeScript.

    It sends a request with an idempotency key and, while the outcome is unknown, repeats it at most four times.
    """
    arguments = "url: string, init: RequestInit" if typed else "url, init"
    returned = ": Promise<Response>" if typed else ""
    return f"""const fetchOnce = async ({arguments}){returned} => {{
    const headers = new Headers(init.headers);
    if (!headers.has("Idempotency-Key")) {{
        const bytes = Array.from(crypto.getRandomValues(new Uint8Array(16)));
        headers.set("Idempotency-Key", bytes.map(byte => byte.toString(16).padStart(2, "0")).join(""));
    }}
    for (const pause of [200, 400, 800, 1600]) {{
        try {{
            const response = await fetch(url, {{...init, headers}});
            const running = response.status === 409 && response.headers.has("Retry-After");
            if (![502, 503, 504].includes(response.status) && !running) {{
                return response;
            }}
        }} catch (error) {{
            if (!(error instanceof TypeError)) {{
                throw error;
            }}
        }}
        await new Promise(resolve => setTimeout(resolve, pause * (0.5 + Math.random())));
    }}
    return fetch(url, {{...init, headers}});
}};"""
