"""Send a request to the service itself, to try an endpoint: over its own listener, as any other client does."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from rowcall.core.errors.problems import Problem
from rowcall.service.console.actions.action import Action, Result, Values
from rowcall.service.console.sources import Sources

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "QUERY", "OPTIONS")
_TARGET = re.compile(r"/[!-~]*")
_HEADER = re.compile(r"[ -~]*")
_UNIX = "http://unix:"
_WITHIN = 10.0
"""Seconds for the response; what has arrived of a longer one, such as of a stream of events, is shown."""
_LARGEST = 262_144
"""Bytes of a body that are shown."""
_PIECE = 16_384
LARGEST_BODY = 500_000
"""Characters of a body that is sent."""


def request_actions(sources: Sources) -> Iterator[Action]:
    """Yield the action."""

    def send(values: Values) -> Result:
        return _send(sources, values)

    meaning = "Sends a request to this service; body is JSON, and authorization the header of that name."
    yield Action("send-request", meaning, send, ("method", "path"), ("body", "authorization"), LARGEST_BODY)


def _send(sources: Sources, values: Values) -> Result:
    """Raises `Problem`: 400 for an invalid request, 502 without a response."""
    method, target, authorization = values["method"], values["path"], values.get("authorization", "")
    if method not in _METHODS:
        raise Problem(400, f"method: {method[:20]!r} is none of {', '.join(_METHODS)}")
    if not _TARGET.fullmatch(target):
        raise Problem(400, "path: it begins with a slash, and has no blanks or characters that must be encoded")
    if not _HEADER.fullmatch(authorization):
        raise Problem(400, "authorization: a header has no control characters")
    headers = {"user-agent": "rowcall console"}
    if authorization:
        headers["authorization"] = authorization
    body = values.get("body")
    if body:
        headers["content-type"] = "application/json"
    url = next(iter(sources.urls()), None)
    if url is None:
        raise Problem(503, "the service does not listen yet", headers=(("retry-after", "1"),))
    began = time.monotonic()
    connection = _connection(url)
    try:
        connection.request(method, target, body.encode() if body else None, headers)
        response = connection.getresponse()
        content, complete = _read(response, connection.sock, began + _WITHIN)
    except (OSError, http.client.HTTPException) as error:
        raise Problem(502, f"{url} has not responded: {error or type(error).__name__}") from None
    finally:
        connection.close()
    return {
        "status": response.status,
        "headers": [[name.lower(), value] for name, value in response.getheaders()],
        "body": content.decode(errors="replace"),
        "complete": complete,
        "milliseconds": round((time.monotonic() - began) * 1000, 3),
    }


def _connection(url: str) -> http.client.HTTPConnection:
    if url.startswith(_UNIX):
        return _UnixConnection(url.removeprefix(_UNIX))
    parts = urlsplit(url)
    if parts.scheme == "https":
        # The certificate is that of a public name, and this is the address of a listener of this process.
        context = ssl._create_unverified_context()  # noqa: S323
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=_WITHIN, context=context)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_WITHIN)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_WITHIN)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_WITHIN)
        self.sock.connect(self._path)


def _read(response: http.client.HTTPResponse, connection: Any, until: float) -> tuple[bytes, bool]:
    """Return the body that arrives in time, and whether it is complete. connection: None if the server has closed
    it.
    """
    parts: list[bytes] = []
    length = 0
    while length < _LARGEST:
        seconds = until - time.monotonic()
        if seconds <= 0:
            return b"".join(parts), False
        if connection is not None:
            connection.settimeout(seconds)
        try:
            part = response.read1(_PIECE)
        except TimeoutError:
            return b"".join(parts), False
        if not part:
            return b"".join(parts), True
        parts.append(part)
        length += len(part)
    return b"".join(parts), False
