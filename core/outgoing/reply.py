"""The response of another service, as the values that a routine receives (outbound-10, proxies-10)."""

from __future__ import annotations

import codecs
import encodings
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from encodings.aliases import aliases
from functools import cache

import orjson

from rowcall.core.data.record import Record
from rowcall.core.text.record_literal import literal

_CONTENT = re.compile(r"content-.*|allow|expires|last-modified", re.IGNORECASE)
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)

_NOT_CHARSETS = frozenset({"idna", "punycode", "undefined"})
"""Codecs of Python that are no character sets. The time of the first two grows with the square of the text."""

TIMED_OUT = 408
"""Status of a reply if the other service has not responded in time."""
FAILED = 0
"""Status of a reply if there is no response for another reason."""

_KNOWN = (
    "Accept-Ranges Access-Control-Allow-Credentials Access-Control-Allow-Headers Access-Control-Allow-Methods "
    "Access-Control-Allow-Origin Access-Control-Expose-Headers Access-Control-Max-Age Age Allow Alt-Svc Cache-Control "
    "Connection Content-Disposition Content-Encoding Content-Language Content-Length Content-Location Content-MD5 "
    "Content-Range Content-Security-Policy Content-Type Date ETag Expires Keep-Alive Last-Modified Link Location "
    "Pragma Proxy-Authenticate Referrer-Policy Refresh Retry-After Server Set-Cookie Strict-Transport-Security Trailer "
    "Transfer-Encoding Upgrade Vary Via Warning WWW-Authenticate X-Content-Type-Options X-Frame-Options X-Powered-By"
)
_SPELLING = {name.lower(): name for name in _KNOWN.split()}


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds that a header Retry-After asks to wait, which has a number or a date (RFC 9110, 10.2.3); None:
    it is absent or malformed. A date in the past gives 0.

    value: of the header; None: it is absent. now: seconds since 1970.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Reply(Record):
    """The result of one outgoing request. Without a response, there is an error and no body.

    status: `TIMED_OUT` or `FAILED` without a response. headers: as `headers_json` returns them. error: reason of a
    failure, as text. None: there is no such part.
    """

    status: int
    body: bytes | None = None
    headers: str | None = None
    content_type: str | None = None
    error: str | None = None
    retry_after: float | None = None
    """Seconds for which the other service asks to wait; None: it does not ask."""

    @property
    def success(self) -> bool:
        return 200 <= self.status < 300

    def value(self, part: str, *, binary: bool = False) -> bytes | None:
        """Return one part as the text that PostgreSQL reads; None: NULL.

        part: `status_code`, `body`, `headers`, `content_type`, `success` or `error_message`. binary: the body is for a
        `bytea`.
        """
        if part == "body" and binary:
            return None if self.body is None else b"\\x" + self.body.hex().encode()
        text = self._text(part)
        return None if text is None else text.encode()

    def row(self, parts: Sequence[str | None]) -> bytes:
        """Return the reply as the literal of a composite, such as `("200","{}",)`. `success` is `t` or `f` in it, as
        PostgreSQL prints booleans.

        parts: for each attribute, the part that it receives, named as for `value`; None: NULL.
        """
        return literal(self._in_row(part) for part in parts).encode()

    def _in_row(self, part: str | None) -> str | None:
        if part == "success":
            return "t" if self.success else "f"
        return None if part is None else self._text(part)

    def _text(self, part: str) -> str | None:
        match part:
            case "status_code":
                return str(self.status)
            case "body":
                return None if self.body is None else decode_body(self.body, self.content_type)
            case "headers":
                return self.headers
            case "content_type":
                return self.content_type
            case "success":
                return "true" if self.success else "false"
        return self.error


def decode_body(body: bytes, content_type: str | None) -> str:
    """Return the text of a body. Bytes that are invalid in its character set, and NUL, become U+FFFD.

    content_type: with the character set, such as `text/plain; charset=latin1`. UTF-8 is used if it names none that is
    known.
    """
    try:
        charset = _charset(content_type)
        text = body.decode("utf-8-sig" if charset == "utf-8" else charset, "replace")
        if charset != "utf-8":
            # Some codecs can produce half of a surrogate pair.
            text = text.encode("utf-8", "replace").decode()
    except (LookupError, UnicodeError):
        text = body.decode("utf-8", "replace")
    return text.replace("\0", "\ufffd")


def _charset(content_type: str | None) -> str:
    """Return the name of the codec for the character set of a content type; `utf-8` if it names none that is known.
    Raises `LookupError` for a codec that cannot be used.

    Python never forgets a name that it was asked for, so only names that it knows are looked up.
    """
    name = _CHARSET.search(content_type or "")
    if name is None or encodings.normalize_encoding(name[1]).lower() not in _known_charsets():
        return "utf-8"
    return codecs.lookup(name[1]).name


@cache
def _known_charsets() -> frozenset[str]:
    """Return the names of character sets that Python has, as `encodings.normalize_encoding` writes them."""
    # Imported here, as most services need no responses of others.
    import pkgutil

    codec_names = {item.name for item in pkgutil.iter_modules(encodings.__path__)}
    return frozenset(codec_names | set(aliases)) - _NOT_CHARSETS


def _as_written(value: str) -> str:
    """Return the value of a header as text, without NUL. value: its bytes decoded as Latin-1. If they are valid UTF-8,
    they are decoded as such, which is what most senders use."""
    value = value.replace("\0", "")
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def headers_json(headers: Iterable[tuple[str, str]]) -> str:
    """Return headers as JSON, such as `{"Name":"v1, v2"}`. Values of headers whose names differ at most in case are
    joined; the names of common headers get their usual spelling.

    Headers of the response come first, then those of its content, such as `Content-Type`. headers: values are bytes
    decoded as Latin-1.
    """
    joined: dict[str, str] = {}
    names: dict[str, str] = {}
    for name, value in headers:
        lowered = name.lower()
        spelling = names.setdefault(lowered, _SPELLING.get(lowered, name))
        value = _as_written(value)
        joined[spelling] = f"{joined[spelling]}, {value}" if spelling in joined else value
    content = {name: value for name, value in joined.items() if _CONTENT.fullmatch(name)}
    others = {name: value for name, value in joined.items() if name not in content}
    return orjson.dumps({**others, **content}).decode()
