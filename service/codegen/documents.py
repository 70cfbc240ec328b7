"""The OpenAPI document, `.http` files and tool definitions: written by the supervisor, served by the workers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import orjson

from rowcall.core.codegen.comments import Definitions
from rowcall.core.codegen.selection import TypesOf
from rowcall.core.documents.http_files import http_files
from rowcall.core.documents.openapi import document
from rowcall.core.documents.options import HttpFileOptions, OpenApi
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.mcp.options import ToolSchemaOptions
from rowcall.core.mcp.tool_schemas import ToolNameError, plain_names, tool_documents
from rowcall.core.mcp.tools import tool_entries
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.service.codegen.writing import replace_file
from rowcall.service.options.capabilities.description_options import Descriptions
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")


class RequestFiles:
    """The `.http` files of one process: written, and removed again when their endpoints have vanished."""

    def __init__(self, options: HttpFileOptions) -> None:
        self._options = options
        self._names: frozenset[str] = frozenset()
        """The names of the files that this process has written, or found as it would have written them."""

    def write(self, endpoints: Sequence[Endpoint], definitions: Definitions) -> bool:
        """Write files that are missing or whose content has changed, and remove those of former endpoints. If
        `FileOverwrite` is false, existing files are neither changed nor removed. Return whether all this succeeded."""
        options = self._options
        texts = dict(http_files(endpoints, definitions, options))
        done = [_write(name, text, overwrite=options.overwrite) for name, text in texts.items()]
        if options.overwrite:
            done += [_remove(name) for name in sorted(self._names - texts.keys())]
        self._names = frozenset(texts)
        return all(done)


def write_documents(
    endpoints: Sequence[Endpoint],
    types_of: TypesOf,
    descriptions: Descriptions,
    catalogue: PostgRestCatalogue | None,
) -> bool:
    """Write the OpenAPI document and the tool definitions that are missing or have changed; return whether all could be
    written. If `FileOverwrite` is false, existing files stay unchanged. QUERY endpoints, which OpenAPI cannot describe,
    are logged. Raises `StartupError` if the names of two tools are equal. catalogue: of PostgREST's interface, which
    the OpenAPI document describes too; None: the interface is not served."""
    done = True
    if (openapi := descriptions.openapi) is not None:
        for endpoint in endpoints:
            if endpoint.method == "QUERY" and not endpoint.options.internal:
                log.warning("%s: OpenAPI knows no method QUERY; the document leaves it out", endpoint.name)
        if openapi.file is not None:
            text = orjson.dumps(document(endpoints, types_of, openapi.options, catalogue)).decode()
            done &= _write(openapi.file, text, overwrite=openapi.overwrite)
    if descriptions.tool_schemas is not None:
        done &= _write_tools(endpoints, types_of, descriptions.tool_schemas)
    return done


def _write_tools(endpoints: Sequence[Endpoint], types_of: TypesOf, options: ToolSchemaOptions) -> bool:
    """Write the tool definitions; return whether all could be written. Raises `StartupError` if the names of two tools
    are equal.
    """
    entries = tool_entries(endpoints, types_of, options.tools)
    if not entries:
        log.warning("Service:McpOptions:ToolSchemas: no endpoint is a tool; a comment makes one with `mcp`")
    try:
        documents = tuple(tool_documents(entries, options))
    except ToolNameError as error:
        raise StartupError(f"Service:McpOptions:ToolSchemas: {error}") from None
    for name, plain in plain_names(sorted(entries)).items():
        if name != plain:
            log.warning("the tool %s is called %s where only letters, digits, _ and - are allowed", name, plain)
    written = [
        _write(item.place.file, item.text, overwrite=options.overwrite)
        for item in documents
        if item.place.file is not None
    ]
    return all(written)


def _write(name: str, text: str, *, overwrite: bool) -> bool:
    """Write a file that is missing or, with `overwrite`, has other content. Return False if that fails, which is
    logged. name: path of the file.
    """
    path = Path(name)
    try:
        if not path.exists() or (overwrite and path.read_text(encoding="utf-8") != text):
            replace_file(path, text)
            log.info("%s is written", path)
        elif not overwrite:
            log.info("%s is left alone as FileOverwrite is false", path)
    except (OSError, UnicodeDecodeError) as error:
        log.error("%s cannot be written: %s", path, error)
        return False
    return True


def _remove(name: str) -> bool:
    """Remove a file. Return False if that fails, which is logged. name: path of the file."""
    try:
        Path(name).unlink(missing_ok=True)
    except OSError as error:
        log.error("%s cannot be removed: %s", name, error)
        return False
    log.info("%s is removed, as it has no endpoints any more", name)
    return True


def document_routes(
    endpoints: Sequence[Endpoint],
    types_of: TypesOf,
    requests: Iterable[tuple[str, str]],
    openapi: OpenApi | None,
    tools: ToolSchemaOptions | None,
    catalogue: PostgRestCatalogue | None,
) -> Iterator[tuple[str, Step]]:
    """Yield path and step of each served document; the method is GET. requests: names and texts of `.http` files.
    openapi, tools: None if not served. catalogue: of PostgREST's interface, which the OpenAPI document describes too;
    None: the interface is not served. Raises `ToolNameError` if the names of two tools are equal."""
    if openapi is not None and openapi.path is not None:
        options = openapi.options
        yield (
            openapi.path,
            _Document("application/json", lambda: orjson.dumps(document(endpoints, types_of, options, catalogue))),
        )
    for name, text in requests:
        yield f"/{name}", _Document("text/plain", text.encode)
    if tools is not None:
        for item in tool_documents(tool_entries(endpoints, types_of, tools.tools), tools):
            if item.place.path is not None:
                yield item.place.path, _Document(item.content_type, item.text.encode)


class _Document:
    """Step that sends a document, which is generated at the first request."""

    def __init__(self, content_type: str, make: Callable[[], bytes]) -> None:
        self._headers = [("content-type", content_type)]
        self._make = make
        self._body: bytes | None = None

    def __call__(self, context: RequestContext) -> None:
        if self._body is None:
            self._body = self._make()
        context.protocol.response_bytes(200, self._headers, self._body)
        context.answered = True
