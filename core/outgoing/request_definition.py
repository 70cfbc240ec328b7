"""Parser for the comment of a composite type that describes an outgoing request (outbound-4 to outbound-7).

    timeout 2s
    @retry_delay 200ms, 1s on 429, 503
    GET https://geo.example.net/v1/{_ip}
    X-Key: {GEO_KEY}

    body to the end

This module sends no request and replaces no placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rowcall.core.catalogue.catalog import TypeInfo, TypeKind
from rowcall.core.data.record import Record
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.outgoing.address import BadUrlError, names_its_host, read_address
from rowcall.core.outgoing.forwarding import OF_CONNECTION
from rowcall.core.text.interval import parse_interval

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "QUERY")
_OTHER_METHODS = ("HEAD", "OPTIONS", "TRACE", "CONNECT")
"""Methods of HTTP that no type can have."""
IDEMPOTENT = ("GET", "PUT", "DELETE", "QUERY")
"""Methods whose requests have the same effect if they are sent twice (RFC 9110, 9.2.2)."""
FALLBACK_SECONDS = 30.0
"""Seconds that are used instead of an invalid duration of a directive."""

_DIRECTIVE = re.compile(
    r"[#@\s]*(?P<word>timeout|retry_delay|cache|hedge)(?:\s*[=:]\s*|\s+|$)(?P<value>.*)", re.IGNORECASE
)
_IN_URL = re.compile(r"[/{?:]|\w\.\w\w")
"""What a URL, path, placeholder or name of a host has, unlike most words of prose."""
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_UNSENT = re.compile(r"content-(?!type).*|allow|expires|last-modified", re.IGNORECASE)
_BEHIND_LINE = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


@dataclass(frozen=True, slots=True)
class RequestDefinition(Record):
    """A request as the comment of a type describes it, with its placeholders. body: None: there is none. cached:
    responses are cached."""

    method: str
    url: str
    """Absolute URL, or with a leading `/` the path of an endpoint of this service."""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str | None = None
    """Content type of the body; None: the request has no body."""
    body: str | None = None
    timeout: float | None = None
    """Seconds; None: no limit."""
    retry_delays: tuple[float, ...] = ()
    """Seconds before each further attempt."""
    retry_codes: tuple[int, ...] = ()
    """Statuses after which the request is repeated. Empty: all statuses that are no success."""
    cached: bool = False
    cache_seconds: float | None = None
    """Lifetime of the cached response; None: until the service stops."""
    hedge: float | None = None
    """Seconds without a response after which the same request is sent a second time. None: never."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a comment. problems: mistakes in it, each a text for the log."""

    definition: RequestDefinition | None
    """None: the comment describes no request."""
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class _Draft:
    """What directives and headers have set so far, as in `RequestDefinition`. headers: name in lower case → name as
    written, and value. problems: as in `Reading`."""

    timeout: float | None = None
    retry_delays: tuple[float, ...] = ()
    retry_codes: tuple[int, ...] = ()
    cached: bool = False
    cache_seconds: float | None = None
    hedge: float | None = None
    headers: dict[str, tuple[str, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_definition(comment: str) -> Reading:
    """Return the request that a comment describes. Raises no errors: mistakes are `problems` of the result.

    Directives, lines that begin with `#` and empty lines may precede the request line. If the first other line is no
    request line, the comment is prose: no request, and no mistake. A method of HTTP that no type can have is a mistake,
    and gives no request.
    """
    lines = _BEHIND_LINE.split(comment)
    draft = _Draft()
    start = _request_line(lines, draft)
    if start is None:
        return Reading(None)
    method, _, target = lines[start].strip().partition(" ")
    url = target.strip().partition(" ")[0]
    if method.upper() not in (*METHODS, *_OTHER_METHODS) or not _IN_URL.search(url):
        return Reading(None)
    if method.upper() in _OTHER_METHODS:
        return Reading(None, (f"'{method}' is none of {', '.join(METHODS)}",))
    if not url.startswith("/") and names_its_host(url):
        try:
            read_address(url)
        except BadUrlError as error:
            draft.problems.append(f"{url} cannot be called: {error}")
    body = _read_head(lines, start + 1, draft)
    return Reading(_definition(method.upper(), url, body, draft), tuple(draft.problems))


def type_diagnostics(types: Iterable[TypeInfo]) -> Iterator[Diagnostic]:
    """Yield the mistakes in the comments of composite types that describe requests. types: other kinds of types, and
    those without a comment, are ignored."""
    for info in types:
        if info.kind is TypeKind.COMPOSITE and info.comment:
            reading = read_definition(info.comment)
            yield from (Diagnostic(f"type {info.display}", None, problem) for problem in reading.problems)


def _request_line(lines: list[str], draft: _Draft) -> int | None:
    """Return the index of the first line that is neither empty nor a directive nor a remark (`#`): only this line can
    be the request line. None: there is no such line. Directives before it are applied to the draft."""
    for index, line in enumerate(lines):
        text = line.strip()
        if not text or _is_directive(text, draft) or text.startswith("#"):
            continue
        return index
    return None


def _read_head(lines: list[str], start: int, draft: _Draft) -> str | None:
    """Read headers and directives up to an empty line into the draft. Return the text after that line, verbatim, as
    body; None: there is no such text, or it is blank.

    lines: of the comment, with their line ends. start: index of the first line to read.
    """
    for index in range(start, len(lines)):
        text = lines[index].strip()
        if not text:
            body = "".join(lines[index + 1 :])
            return body if body.strip() else None
        if not _is_directive(text, draft) and not text.startswith("#"):
            _read_header(text, draft)
    return None


def _read_header(text: str, draft: _Draft) -> None:
    name, colon, value = text.partition(":")
    name = name.strip()
    if not colon or not _NAME.fullmatch(name):
        draft.problems.append(f"'{text}' is no header and is left out; an empty line stands in front of a body")
    elif _UNSENT.fullmatch(name) or name.lower() in OF_CONNECTION:
        draft.problems.append(f"the header {name} is not sent: the service sets it itself if a request needs it")
    else:
        draft.headers[name.lower()] = (name, value.strip())


def _definition(method: str, url: str, body: str | None, draft: _Draft) -> RequestDefinition:
    declared = draft.headers.get("content-type")
    content_type = "application/json" if declared is None else declared[1]
    if draft.cached and method != "GET":
        draft.problems.append(f"only responses to GET are cached, not those to {method}")
        draft.cached, draft.cache_seconds = False, None
    if draft.hedge is not None and method not in IDEMPOTENT:
        draft.problems.append(f"{method} is not hedged: what is sent twice may take effect twice")
        draft.hedge = None
    return RequestDefinition(
        method,
        url,
        headers=tuple(pair for name, pair in draft.headers.items() if name != "content-type"),
        content_type=None if body is None else content_type,
        body=body,
        timeout=draft.timeout,
        retry_delays=draft.retry_delays,
        retry_codes=draft.retry_codes,
        cached=draft.cached,
        cache_seconds=draft.cache_seconds,
        hedge=draft.hedge,
    )


def _is_directive(line: str, draft: _Draft) -> bool:
    """Return whether the line is a directive; if it is, apply it to the draft. line: trimmed."""
    match = _DIRECTIVE.fullmatch(line)
    if match is None:
        return False
    _READERS[match["word"].lower()](match["value"].strip(), draft)
    return True


def _read_timeout(value: str, draft: _Draft) -> None:
    draft.timeout = _seconds(value, draft)


def _read_retry_delay(value: str, draft: _Draft) -> None:
    delays, _, codes = re.sub(r"\bon\b", "\0", value, count=1, flags=re.IGNORECASE).partition("\0")
    draft.retry_delays = tuple(_seconds(delay, draft) for delay in _split_list(delays))
    draft.retry_codes = tuple(code for text in _split_list(codes) if (code := _status(text, draft)) is not None)


def _read_cache(value: str, draft: _Draft) -> None:
    draft.cached = True
    draft.cache_seconds = parse_interval(value) if value else None
    if not value:
        draft.problems.append("cache has no duration: responses are cached until the service stops")
    elif draft.cache_seconds is None:
        draft.problems.append(f"'{value}' is not an interval; nothing is cached")
        draft.cached = False


def _read_hedge(value: str, draft: _Draft) -> None:
    draft.hedge = parse_interval(value)
    if draft.hedge is None:
        draft.problems.append(f"'{value}' is not an interval; the request is sent once")


_READERS = {"timeout": _read_timeout, "retry_delay": _read_retry_delay, "cache": _read_cache, "hedge": _read_hedge}


def _split_list(text: str) -> Iterator[str]:
    return (part.strip() for part in text.split(",") if part.strip())


def _seconds(text: str, draft: _Draft) -> float:
    seconds = parse_interval(text)
    if seconds is None:
        draft.problems.append(f"'{text}' is not an interval; {FALLBACK_SECONDS:g} s are taken")
        return FALLBACK_SECONDS
    return seconds


def _status(text: str, draft: _Draft) -> int | None:
    if text.isascii() and text.isdecimal() and len(text) == 3 and int(text) >= 100:
        return int(text)
    draft.problems.append(f"'{text}' is no status code")
    return None
