"""Headers that a proxy forwards in requests and responses, and what it adds to query and body (proxies-5 to proxies-7,
proxies-13).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote_plus

import orjson

from rowcall.core.data.record import Record
from rowcall.core.text import json_text

Headers = list[tuple[str, str]]

OF_CONNECTION = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade", "http2-settings", "expect",
})  # fmt: skip
"""Headers that concern one connection only (RFC 9110, 7.6.1). The HTTP client adds the framing."""
FORWARDED = ("x-forwarded-", "x-original-", "x-real-ip", "forwarded")
"""Prefixes of headers that describe the client. A client can send any values, so the service writes these headers
anew."""
OF_CERTIFICATE = frozenset({"client-cert", "client-cert-chain"})
"""Headers of the client's certificate (RFC 9440). They are never written: the service requests no certificates."""
OF_CONTENT_FORWARDED = frozenset({"content-encoding", "content-language", "content-disposition"})
"""Headers without which a forwarded body would have another meaning."""
BODY_METHODS = frozenset({"POST", "PUT", "PATCH", "QUERY"})
PLAIN_TEXT = "text/plain; charset=utf-8"

_SEPARATORS = str.maketrans(dict.fromkeys("!#$%&'*+.^_`|~", "-"))
_AUTHORITY = re.compile(r"[A-Za-z0-9._~\[\]:-]+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_UNRESERVED_PATH = "/:@!$&'()*+,;=~"
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.\-/:@!$&'()*+,;=~]*")


class JsonKind(enum.Enum):
    """How a value is written into a JSON object."""

    NATIVE = "native"
    """Numbers and booleans."""
    EMBEDDED = "embedded"
    """json and jsonb."""
    STRING = "string"


@dataclass(frozen=True, slots=True)
class Automatic(Record):
    """A parameter whose value this service supplies, and also adds to the request for the other service."""

    index: int
    name: str
    """Name in requests."""
    kind: JsonKind = JsonKind.STRING


AutomaticValue = tuple[Automatic, str | None]
"""A parameter and its value as text; None: NULL."""


def variable_name(name: str) -> str:
    """Return the name of a header in lower case with `-` for other punctuation.

    The result is equal for all names that a server may take for the same one: many servers make variables of headers
    (RFC 3875, 4.1.18), so that they read `X_Forwarded_For` as `X-Forwarded-For`.
    """
    return name.lower().translate(_SEPARATORS)


def request_headers(items: Iterable[tuple[str, str]], excluded: Collection[str], *, with_body: bool) -> Headers:
    """Return the headers of a request that are forwarded, without those that describe its client.

    Headers of the connection, those that its header Connection names, and most of those about the body (`Content-*`)
    are not forwarded. excluded: names as `variable_name` returns them. with_body: the body is forwarded, with
    `OF_CONTENT_FORWARDED`.
    """
    forwarded: Headers = []
    named: set[str] = set()
    for pair in items:
        name = variable_name(pair[0])
        if name == "connection":
            named |= _words(pair[1])
        elif name in excluded or name in OF_CONNECTION or name in OF_CERTIFICATE or name.startswith(FORWARDED):
            continue
        elif not name.startswith("content-") or (with_body and name in OF_CONTENT_FORWARDED):
            forwarded.append(pair)
    return [pair for pair in forwarded if pair[0].lower() not in named] if named - OF_CONNECTION else forwarded


def forwarded_headers(address: str | None, scheme: str, host: str) -> Headers:
    """Return the headers that describe the client to the next server: `X-Forwarded-*`, and `Forwarded` (RFC 7239).

    address: of the client; None: unknown. scheme: `http` or `https`, as the client has used it. host: the authority
    that the client has requested; empty or not valid: it is left out.
    """
    headers = [("x-forwarded-proto", scheme)]
    parts = []
    if address is not None:
        headers.append(("x-forwarded-for", address))
        parts.append(f'for="[{address}]"' if ":" in address else f"for={address}")
    if host and _AUTHORITY.fullmatch(host):
        headers.append(("x-forwarded-host", host))
        parts.append(f'host="{host}"')
    headers.append(("forwarded", ";".join([*parts, f"proto={scheme}"])))
    return headers


def response_headers(items: Iterable[tuple[str, str]], excluded: Collection[str], taken: Collection[str]) -> Headers:
    """Return the headers of a response that are forwarded, in lower case, without its content type.

    Headers of the connection, and those that its header Connection names, are not forwarded either. excluded: names
    that are not forwarded. taken: names of headers that the response to the client already has. Both in lower case.
    """
    forwarded: Headers = []
    named: set[str] = set()
    for name, value in items:
        name = name.lower()
        if name == "connection":
            named |= _words(value)
        elif not (name == "content-type" or name in excluded or name in OF_CONNECTION or name in taken):
            forwarded.append((name, value))
    return [pair for pair in forwarded if pair[0] not in named] if named - OF_CONNECTION else forwarded


def _words(value: str) -> set[str]:
    return {word.strip().lower() for word in value.split(",")}


def encoded_path(path: str) -> str:
    """Return a decoded path percent-encoded, as the target of a request has to be. A `%` is encoded too."""
    return path if _PLAIN_PATH.fullmatch(path) else quote(path, safe=_UNRESERVED_PATH)


def mended_path(path: str) -> str:
    """Return an encoded path in which characters that no request may contain are percent-encoded too; existing
    percent-encoding stays."""
    return quote(path, safe=f"{_UNRESERVED_PATH}%")


def query_with(query: str, additions: Sequence[AutomaticValue], longest: int) -> tuple[str, list[str]]:
    """Return the query with the values of the service appended, and the names of values that are too long for it.

    query: encoded, without `?`. NULL is not appended. Values that the client has sent under the names in `additions`
    are removed: a server that reads the first of two values would take it for that of the service. longest: maximum
    length of a value in characters; 0 or less: no limit.
    """
    if not additions:
        return query, []
    own = {automatic.name for automatic, _ in additions}
    values = [pair for pair in query.split("&") if pair and unquote_plus(pair.partition("=")[0]) not in own]
    too_long = []
    for automatic, value in additions:
        if value is None:
            continue
        if 0 < longest < len(value):
            too_long.append(automatic.name)
        else:
            values.append(f"{_percent_encode(automatic.name)}={_percent_encode(value)}")
    return "&".join(values), too_long


def _percent_encode(text: str) -> str:
    return quote(text, safe="-_.~")


def body_with(body: bytes, values: Sequence[AutomaticValue]) -> bytes:
    """Return a JSON object with the values of the service added, which replace members of the same name. NULL becomes
    null. If the body is not a JSON object, a new object replaces it."""
    try:
        members = dict(json_text.body_members(body)) if body.strip() else {}
    except json_text.JsonTextError:
        members = {}
    members |= {automatic.name: _json(automatic.kind, value) for automatic, value in values}
    return b"{" + b",".join(orjson.dumps(name) + b":" + value for name, value in members.items()) + b"}"


def _json(kind: JsonKind, value: str | None) -> bytes:
    if value is None:
        return b"null"
    if kind is JsonKind.NATIVE:
        word = {"t": "true", "f": "false"}.get(value.lower(), value.lower())
        if word in ("true", "false") or _NUMBER.fullmatch(value):
            return word.encode()
    elif kind is JsonKind.EMBEDDED:
        raw = value.encode()
        try:
            json_text.check(raw)
        except json_text.JsonTextError:
            return orjson.dumps(value)
        return raw
    return orjson.dumps(value)
