"""The OpenAPI document and files of example requests: written by the supervisor, served by the workers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import orjson

from rowcall.core.codegen.selection import TypesOf
from rowcall.core.documents.http_files import HttpFileOptions, http_files
from rowcall.core.documents.openapi import OpenApi, document
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.codegen.writing import replace_file
from rowcall.service.exchange.exchange import Exchange, Step

log = logging.getLogger("rowcall")


def write_documents(
    endpoints: Sequence[Endpoint], types_of: TypesOf, openapi: OpenApi | None, requests: HttpFileOptions | None
) -> None:
    """Files that have not changed stay as they are."""
    if openapi is not None and openapi.file is not None:
        text = orjson.dumps(document(endpoints, types_of, openapi.options)).decode()
        _write(openapi.file, text, overwrite=openapi.overwrite)
    if requests is not None and requests.write:
        for name, text in http_files(endpoints, {}, requests):
            _write(name, text, overwrite=requests.overwrite)


def _write(name: str, text: str, *, overwrite: bool) -> None:
    path = Path(name)
    try:
        if path.exists() and (not overwrite or path.read_text(encoding="utf-8") == text):
            return
        replace_file(path, text)
        log.info("%s is written", path)
    except (OSError, UnicodeDecodeError) as error:
        log.error("%s cannot be written: %s", path, error)


def document_routes(
    endpoints: Sequence[Endpoint], types_of: TypesOf, openapi: OpenApi | None, requests: HttpFileOptions | None
) -> Iterator[tuple[str, Step]]:
    """Path and step of each; all are GET."""
    if openapi is not None and openapi.path is not None:
        options = openapi.options
        yield (
            openapi.path,
            _Document("application/json", lambda: orjson.dumps(document(endpoints, types_of, options))),
        )
    if requests is not None and requests.serve:
        for name, text in http_files(endpoints, {}, requests):
            yield f"/{name}", _Document("text/plain", text.encode)


class _Document:
    """Made when it is asked for first."""

    def __init__(self, content_type: str, make: Callable[[], bytes]) -> None:
        self._headers = [("content-type", content_type)]
        self._make = make
        self._body: bytes | None = None

    def __call__(self, exchange: Exchange) -> None:
        if self._body is None:
            self._body = self._make()
        exchange.protocol.response_bytes(200, self._headers, self._body)
        exchange.answered = True
