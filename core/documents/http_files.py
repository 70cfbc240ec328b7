"""`.http` files: example requests that editors can send (documents-1, documents-2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote

import orjson

from rowcall.core.catalogue.source import Transport
from rowcall.core.codegen.automatic import automatic_parameters
from rowcall.core.codegen.comments import Definitions, definition_lines, without_line_breaks
from rowcall.core.codegen.selection import folder_of
from rowcall.core.documents.options import HttpFileOptions
from rowcall.core.documents.samples import json_text, sample_text, texts, value_of
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter


def http_files(
    endpoints: Iterable[Endpoint], definitions: Definitions, options: HttpFileOptions
) -> Iterator[tuple[str, str]]:
    """Yield file name and text of each file. Internal endpoints are left out. definitions: of the routines, for the
    comments above requests."""
    files: dict[str, list[str]] = {}
    for endpoint in endpoints:
        if endpoint.options.internal:
            continue
        group = (folder_of(endpoint) or endpoint.routine.schema.replace("/", "_")) if options.by_schema else ""
        name = options.pattern.replace("{0}", options.name).replace("{1}", group) + ".http"
        files.setdefault(name, [f"@host={options.host}\n\n"]).append(_request(endpoint, definitions, options))
    yield from ((name, "".join(parts)) for name, parts in files.items())


def _request(endpoint: Endpoint, definitions: Definitions, options: HttpFileOptions) -> str:
    head = "".join(f"{line}\n" for line in _head(endpoint, definitions, options))
    return f"{head}{example_request(endpoint, options)}\n\n###\n\n"


def _head(endpoint: Endpoint, definitions: Definitions, options: HttpFileOptions) -> Iterator[str]:
    if options.comment == "None":
        return
    yield from (f"// {without_line_breaks(line)}" for line in definition_lines(endpoint, definitions, options.comment))
    if not options.comments or not endpoint.prose:
        return
    yield "//"
    yield from (f"// {without_line_breaks(line)}" for line in endpoint.prose)


def example_request(endpoint: Endpoint, options: HttpFileOptions) -> str:
    """Return an example request in the format of `.http` files, with `{{host}}` in place of the base URL, and without a
    newline at its end. Path parameters stay as placeholders (documents-2). Virtual parameters are left out, and with
    `omit_automatic` also those that the service fills itself."""
    automatic = automatic_parameters(endpoint, options.claims) if options.omit_automatic else frozenset()
    raw = endpoint.raw_body
    shown = [
        (index, item)
        for index, item in enumerate(endpoint.parameters)
        if index not in automatic and not item.path and not item.virtual
    ]
    line = f"{endpoint.method} {{{{host}}}}{endpoint.path}"
    if endpoint.transport is Transport.QUERY:
        query = _query(endpoint, (item for _, item in shown if item is not raw))
        line += f"?{query}" if query else ""
        if raw is None or not any(item is raw for _, item in shown):
            return line
        index = next(index for index, item in shown if item is raw)
        return f"{line}\n\n{sample_text(endpoint, raw) or texts(raw, index)[0]}"
    if not shown:
        return line
    members = ",\n".join(
        f"    {json.dumps(item.api_name, ensure_ascii=False)}: {_json(endpoint, item, index)}" for index, item in shown
    )
    return f"{line}\ncontent-type: application/json\n\n{{\n{members}\n}}"


def _json(endpoint: Endpoint, parameter: EndpointParameter, index: int) -> str:
    shown = sample_text(endpoint, parameter)
    if shown is None:
        return json_text(parameter, index)
    value = value_of(parameter, shown)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else shown


def _texts(endpoint: Endpoint, parameter: EndpointParameter, index: int) -> list[str]:
    shown = sample_text(endpoint, parameter)
    if shown is None:
        return texts(parameter, index)
    value = value_of(parameter, shown)
    if not parameter.array or not isinstance(value, list):
        return [shown]
    return [item if isinstance(item, str) else orjson.dumps(item).decode() for item in value]


def _query(endpoint: Endpoint, parameters: Iterable[EndpointParameter]) -> str:
    pairs = (
        f"{quote(item.api_name, safe='')}={quote(text, safe='')}"
        for index, item in enumerate(parameters)
        for text in _texts(endpoint, item, index)
    )
    return "&".join(pairs)
