"""A request and an answer on their way through a proxy: which headers go on, what is added to query and body
(proxies-5 to proxies-7, proxies-13)."""

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
"""About one connection, never about what is behind it (RFC 9110, 7.6.1). Framing is the business of our client."""
FORWARDED = ("x-forwarded-", "x-original-", "x-real-ip", "forwarded")
"""Beginnings of headers that say who the client is. A client can claim anything: what is sent on is written anew."""
OF_CONTENT_FORWARDED = frozenset({"content-encoding", "content-language", "content-disposition"})
"""Without these a body that is passed on byte for byte would mean something else."""
BODY_METHODS = frozenset({"POST", "PUT", "PATCH", "QUERY"})
PLAIN_TEXT = "text/plain; charset=utf-8"

_AUTHORITY = re.compile(r"[A-Za-z0-9._~\[\]:-]+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_UNRESERVED_PATH = "/:@!$&'()*+,;=~"
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.\-/:@!$&'()*+,;=~]*")


class JsonKind(enum.Enum):
    """How a value goes into a JSON object."""

    NATIVE = "native"
    """Numbers and booleans."""
    EMBEDDED = "embedded"
    """json and jsonb."""
    STRING = "string"


@dataclass(frozen=True, slots=True)
class Automatic(Record):
    """A parameter whose value is the service's own and goes to the other service too."""

    index: int
    name: str
    """In requests."""
    kind: JsonKind = JsonKind.STRING


Given = tuple[Automatic, str | None]


def request_headers(items: Iterable[tuple[str, str]], excluded: Collection[str], *, with_body: bool) -> Headers:
    """Those of a request that go on, without what says who its client is.

    What belongs to the connection stays, and what its header Connection names.
    """
    stored: Headers = []
    named: set[str] = set()
    for pair in items:
        name = pair[0].lower()
        if name == "connection":
            named |= _words(pair[1])
        elif name in excluded or name in OF_CONNECTION or name.startswith(FORWARDED):
            continue
        elif not name.startswith("content-") or (with_body and name in OF_CONTENT_FORWARDED):
            stored.append(pair)
    return [pair for pair in stored if pair[0].lower() not in named] if named - OF_CONNECTION else stored


def forwarded_headers(address: str | None, scheme: str, host: str) -> Headers:
    """Headers that tell the next server who the client is: `X-Forwarded-*`, and `Forwarded` (RFC 7239).

    address: of the client; None: it is not known. host: the authority that the client has asked for; may be empty.
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
    """Those of an answer that come back, in lower case; without its content type. taken: names that are set already."""
    stored: Headers = []
    named: set[str] = set()
    for name, value in items:
        name = name.lower()
        if name == "connection":
            named |= _words(value)
        elif not (name == "content-type" or name in excluded or name in OF_CONNECTION or name in taken):
            stored.append((name, value))
    return [pair for pair in stored if pair[0] not in named] if named - OF_CONNECTION else stored


def _words(value: str) -> set[str]:
    return {word.strip().lower() for word in value.split(",")}


def encoded_path(path: str) -> str:
    """A decoded path as it stands in a request."""
    return path if _PLAIN_PATH.fullmatch(path) else quote(path, safe=_UNRESERVED_PATH)


def mended_path(path: str) -> str:
    """One that is encoded already, but for what cannot stand in a request at all."""
    return quote(path, safe=f"{_UNRESERVED_PATH}%")


def query_with(query: str, given: Sequence[Given], longest: int) -> tuple[str, list[str]]:
    """The query with the service's own values behind it, and the names of those that are too long for it.

    A value that the client has sent under one of these names does not go on: whoever reads the first of two would take
    it for ours.
    """
    if not given:
        return query, []
    own = {automatic.name for automatic, _ in given}
    values = [pair for pair in query.split("&") if pair and unquote_plus(pair.partition("=")[0]) not in own]
    too_long = []
    for automatic, value in given:
        if value is None:
            continue
        if 0 < longest < len(value):
            too_long.append(automatic.name)
        else:
            values.append(f"{_encoded(automatic.name)}={_encoded(value)}")
    return "&".join(values), too_long


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


def body_with(body: bytes, given: Sequence[Given]) -> bytes:
    """A JSON object with the service's own values in it; what is no object is replaced by one."""
    try:
        members = dict(json_text.body_members(body)) if body.strip() else {}
    except json_text.JsonTextError:
        members = {}
    members |= {automatic.name: _json(automatic.kind, value) for automatic, value in given}
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
