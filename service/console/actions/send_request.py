"""Send a request to the service itself, to try an endpoint: over its own listener, as any other client does."""

from __future__ import annotations

import base64
import codecs
import contextlib
import http.client
import queue
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rowcall.core.errors.problems import Problem
from rowcall.service.console.actions.action import Action, Result, Results, Values
from rowcall.service.console.sources import Sources

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "QUERY", "OPTIONS")
_TARGET = re.compile(r"/[!-~]*")
_HEADER = re.compile(r"[ -~]*")
_UNIX = "http://unix:"
_WITHIN = 10.0
"""Seconds within which the response must arrive. If it takes longer, as a stream of events does, the part that has
arrived is shown.
"""
_LARGEST = 262_144
"""Bytes of a body that are shown."""
_PIECE = 16_384
_LONGEST = 15_000_000
"""Longest parameter, in characters: a body in base64."""
_MOST_WAITING = 16
"""Most pieces of a stream that wait for the page to read them."""
_IDLE = 1.0
"""Seconds after which a stream without data notices a client that is gone."""

_CREDENTIALS = ("authorization", "cookie", "apiKey")
_OPTIONAL = ("body", "bodyBase64", "contentType", *_CREDENTIALS, "antiforgery")


def request_actions(sources: Sources) -> Iterator[Action]:
    """Yield the actions that send a request and open a stream."""
    meaning = (
        "Sends a request to this service. body is JSON unless contentType says otherwise, or bodyBase64; "
        "authorization, cookie, apiKey and antiforgery (a token) are headers."
    )
    yield Action("send-request", meaning, partial(_send, sources), ("method", "path"), _OPTIONAL, _LONGEST)
    meaning = "Opens an event stream of this service, and sends on what arrives as server-sent events."
    yield Action("open-stream", meaning, partial(_open_stream, sources), ("path",), _CREDENTIALS, _LONGEST)


class _Request(NamedTuple):
    """A valid request. url: of the listener. target: path and query."""

    url: str
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None = None


def _request(sources: Sources, values: Values, method: str) -> _Request:
    """Return the request of an action. Raises `Problem`: 400 for an invalid one, 503 without a listener."""
    if method not in _METHODS:
        raise Problem(400, f"method: {method[:20]!r} is none of {', '.join(_METHODS)}")
    if not _TARGET.fullmatch(values["path"]):
        raise Problem(400, "path: it begins with a slash, and has no blanks or characters that must be encoded")
    body = _body(values)
    headers = {"user-agent": "rowcall console", **dict(_credentials(sources, values))}
    if body is not None:
        headers["content-type"] = _header("contentType", values.get("contentType") or "application/json")
    url = next(iter(sources.urls()), None)
    if url is None:
        raise Problem(503, "the service does not listen yet", headers=(("retry-after", "1"),))
    return _Request(url, method, values["path"], headers, body)


def _body(values: Values) -> bytes | None:
    """Return the body that the parameters of an action contain, None if there is none. Raises `Problem` 400 if it is
    invalid.
    """
    if not values.get("bodyBase64"):
        return values["body"].encode() if values.get("body") else None
    if values.get("body"):
        raise Problem(400, "body and bodyBase64 exclude each other")
    try:
        return base64.b64decode(values["bodyBase64"], validate=True)
    except ValueError:
        raise Problem(400, "bodyBase64: it is no base64") from None


def _credentials(sources: Sources, values: Values) -> Iterator[tuple[str, str]]:
    """Yield the headers with credentials and the antiforgery token that the parameters of an action contain. Raises
    `Problem` 400 for one that the service does not use, or that is not printable ASCII."""
    api_keys, antiforgery = sources.options.auth.api_keys, sources.options.antiforgery
    if values.get("apiKey") and api_keys is None:
        raise Problem(400, "apiKey: this service has no API keys")
    if values.get("antiforgery") and antiforgery is None:
        raise Problem(400, "antiforgery: this service has no antiforgery tokens")
    names = {
        "apiKey": "" if api_keys is None else api_keys.header.lower(),
        "antiforgery": "" if antiforgery is None else antiforgery.header.lower(),
    }
    for name in (*_CREDENTIALS, "antiforgery"):
        if values.get(name):
            yield names.get(name, name), _header(name, values[name])


def _header(name: str, value: str) -> str:
    if not _HEADER.fullmatch(value):
        raise Problem(400, f"{name}: a header has no control characters")
    return value


def _send(sources: Sources, values: Values) -> Result:
    """Send the request that the parameters of the action describe, and return status, headers and body of the response,
    whether the body is complete, and the duration.

    Raises `Problem`: 400 for an invalid request, 502 without a response, 503 if the service does not listen yet.
    """
    request = _request(sources, values, values["method"])
    began = time.monotonic()
    connection = _connection(request.url)
    try:
        connection.request(request.method, request.target, request.body, request.headers)
        response = connection.getresponse()
        content, complete = _read(response, connection.sock, began + _WITHIN)
    except (OSError, http.client.HTTPException) as error:
        raise Problem(502, f"{request.url} has not responded: {error or type(error).__name__}") from None
    finally:
        connection.close()
    return {
        **_head(response),
        "body": content.decode(errors="replace"),
        "complete": complete,
        "milliseconds": round((time.monotonic() - began) * 1000, 3),
    }


def _head(response: http.client.HTTPResponse) -> Result:
    headers = [[name.lower(), value] for name, value in response.getheaders()]
    return {"status": response.status, "headers": headers}


def _open_stream(sources: Sources, values: Values) -> Results:
    """Return the parts, such as events, that arrive over time in response to the request that the parameters of the
    action describe. It is sent when the first part is read.

    Raises `Problem`: 400 for an invalid request, 503 if the service does not listen yet.
    """
    return _parts(_request(sources, values, "GET"))


def _parts(request: _Request) -> Results:
    """Yield the head of the response, then text as it arrives, and an empty result for each second without any. If the
    stream cannot be opened, the last result has the reason in `error`.
    """
    # If the page reads slowly, the stream is read slowly too, and the service applies its rules for slow readers.
    arrived: queue.Queue[Result | None] = queue.Queue(_MOST_WAITING)
    connection = _connection(request.url)
    opened: list[socket.socket] = []
    closed = threading.Event()
    reader = threading.Thread(target=_read_on, args=(request, connection, opened, closed, arrived), daemon=True)
    reader.start()
    try:
        while True:
            try:
                part = arrived.get(timeout=_IDLE)
            except queue.Empty:
                yield {}
                continue
            if part is None:
                return
            yield part
    finally:
        # Ends the thread that reads, whether or not it is connected yet, and also if it waits for room.
        closed.set()
        with contextlib.suppress(queue.Empty):
            while True:
                arrived.get_nowait()
        for opened_socket in opened:
            with contextlib.suppress(OSError):
                opened_socket.shutdown(socket.SHUT_RDWR)


def _read_on(
    request: _Request,
    connection: http.client.HTTPConnection,
    opened: list[socket.socket],
    closed: threading.Event,
    arrived: queue.Queue[Result | None],
) -> None:
    """Read the response until its end, in a thread of its own.

    opened: gets the socket. closed: the results are not read any more. arrived: gets the results, and None at the end.
    """

    def enqueue(result: Result | None) -> None:
        """Put a result into the queue as soon as it has room; drop it if the results are not read any more."""
        while not closed.is_set():
            with contextlib.suppress(queue.Full):
                arrived.put(result, timeout=_IDLE)
                return

    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    try:
        connection.request(request.method, request.target, None, request.headers)
        connected = connection.sock
        opened.append(connected)
        if closed.is_set():
            return
        response = connection.getresponse()
        enqueue(_head(response))
        connected.settimeout(None)
        while not closed.is_set() and (data := response.read1(_PIECE)):
            enqueue({"text": decoder.decode(data)})
    except (OSError, http.client.HTTPException) as error:
        enqueue({"error": f"{request.url}: {error or type(error).__name__}"})
    finally:
        connection.close()
        enqueue(None)


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
    """A connection to the listener at a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_WITHIN)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_WITHIN)
        self.sock.connect(self._path)


def _read(response: http.client.HTTPResponse, connection: Any, until: float) -> tuple[bytes, bool]:
    """Return the part of the body that arrives before `until`, of about `_LARGEST` bytes at most, and whether it is
    complete.

    connection: socket of the response; None if the server has closed it. until: in seconds of the monotonic clock.
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
        except (OSError, http.client.HTTPException):
            return b"".join(parts), False
        if not part:
            # `length` is what is missing of the Content-Length: `read1` is silent about a connection that ends early.
            return b"".join(parts), not response.length
        parts.append(part)
        length += len(part)
    return b"".join(parts), False
