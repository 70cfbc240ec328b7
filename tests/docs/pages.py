"""The manual's pages as something to run: their configuration, their SQL, and requests with the answers they promise.

On a page, ```sql blocks are loaded in order into one database, and a block ```sql sql/name.sql is a file, as is
```html wwwroot/name.html. A block ```json rowcall.json is the configuration that the page is served with. An ```http
block holds one request or several: request line, header lines, an empty line and the body; then the same for the
response. `…` in a promised answer stands for any text, and so does a name in angle brackets, `⟨token⟩`, which stands
for that text in the requests that follow on the page. An ```events block is a stream: the request that opens it, those
that are sent then, and what comes over the stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs"
PATHS = sorted((*FOLDER.glob("*.md"), *FOLDER.glob("how-to/*.md")))
"""The files of the manual, without the fragments of generated pages and without the internals."""

_BLOCK = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_REQUEST = re.compile(r"^(?=(?:GET|HEAD|OPTIONS|POST|PUT|DELETE|PATCH|QUERY) /)", re.MULTILINE)
_RESPONSE = re.compile(r"^HTTP/1\.1 (?P<status>\d{3}) (?P<reason>.+)\n", re.MULTILINE)
_WILDCARD = "…"
_NAMED = re.compile(r"⟨(\w+)⟩")


@dataclass(frozen=True)
class RequestContext:
    """One request and what the page says it gives."""

    line: int
    """Where it stands on its page."""
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: str
    status: int
    promised_headers: tuple[tuple[str, str], ...]
    promised_body: str


@dataclass(frozen=True)
class Sent:
    """A request of which only its effect is shown."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: str


@dataclass(frozen=True)
class Stream:
    """A stream of events, what is done while it is open, and what it brings."""

    line: int
    opening: Sent
    requests: tuple[Sent, ...]
    promised: str


@dataclass(frozen=True)
class Page:
    name: str
    """Path below docs/."""
    settings: dict[str, str]
    """Configuration keys as on the command line."""
    sql: str
    files: tuple[tuple[str, str], ...]
    """Names and texts of .sql files."""
    contexts: tuple[RequestContext | Stream, ...]
    """In the order of the page."""
    installs: bool = False
    """The page runs `rowcall --install` before its examples."""


def pages() -> list[Page]:
    """Every page of the manual, those without examples too."""
    return [read_page(path) for path in PATHS]


def read_page(path: Path) -> Page:
    settings: dict[str, str] = {}
    sql: list[str] = []
    files: list[tuple[str, str]] = []
    contexts: list[RequestContext | Stream] = []
    text = path.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        if block["kind"] == "json rowcall.json":
            settings |= dict(flat(json.loads(block["text"])))
        elif block["kind"] == "sql":
            sql.append(block["text"])
        elif block["kind"].startswith("sql "):
            files.append((block["kind"].removeprefix("sql "), block["text"]))
        elif " wwwroot/" in block["kind"]:
            files.append((block["kind"].partition(" ")[2], block["text"].removesuffix("\n")))
        elif block["kind"] == "http":
            contexts += _requests(block["text"], text[: block.start("text")].count("\n") + 1)
        elif block["kind"] == "events":
            contexts.append(_stream(block["text"], text[: block.start("text")].count("\n") + 1))
    name = path.relative_to(FOLDER).as_posix() if path.is_relative_to(FOLDER) else path.name
    installs = "rowcall --install" in text
    return Page(name, settings, "\n".join(sql), tuple(files), tuple(contexts), installs)


def fits(promised: str, got: str, known: dict[str, str] | None = None) -> bool:
    """Equal except for the parts that the page omits. Values of named placeholders are stored in `known`."""
    parts = re.split(r"(…|⟨\w+⟩)", promised)
    pattern = "".join(_open(part) if index % 2 else re.escape(part) for index, part in enumerate(parts))
    match = re.fullmatch(pattern, got, re.DOTALL)
    if match is not None and known is not None:
        known |= match.groupdict()
    return match is not None


def _open(part: str) -> str:
    return ".*" if part == _WILDCARD else f"(?P<{part[1:-1]}>.*?)"


def filled(text: str, known: dict[str, str]) -> str:
    """A part of a request with the texts that earlier answers gave names to."""
    return _NAMED.sub(lambda match: known[match[1]], text)


def flat(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from flat(inner, f"{key}:{name}" if key else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from flat(inner, f"{key}:{index}")
    else:
        yield key, value if isinstance(value, str) else json.dumps(value)


def application_settings(folder: Path) -> dict[str, str]:
    """The configuration of an application in examples/, for a test that serves it from another folder and brings a
    database of its own."""
    text = re.sub(r"^\s*//.*$", "", (folder / "rowcall.json").read_text(encoding="utf-8"), flags=re.MULTILINE)
    settings = dict(flat(json.loads(text)))
    settings.pop("ConnectionStrings:Default")
    for key in ("Service:SqlFileSource:FilePattern", "StaticFiles:RootPath", "Mail:Folder", "Mail:Templates"):
        if key in settings:
            settings[key] = f"{folder}/{settings[key]}"
    return settings


def _stream(block: str, line: int) -> Stream:
    requests, connected, rest = block.partition(": connected\n")
    sent = [_sent(text) for text in _REQUEST.split(requests) if text.strip()]
    if not sent or not connected:
        raise ValueError(f"line {line}: a stream without a request, or that is never connected")
    return Stream(line, sent[0], tuple(sent[1:]), connected + rest)


def _sent(text: str) -> Sent:
    """Header lines follow the request line at once, and the body, a JSON object, follows them."""
    first, *lines = text.strip().splitlines()
    method, _, target = first.partition(" ")
    fields = [line.partition(":") for line in lines if not line.startswith("{")]
    body = "\n".join(line for line in lines if line.startswith("{"))
    return Sent(method, target, tuple((name.strip(), value.strip()) for name, _, value in fields), body)


def _requests(block: str, first_line: int) -> Iterator[RequestContext]:
    line = first_line
    for text in _REQUEST.split(block):
        if text.strip():
            yield _context(text, line)
        line += text.count("\n")


def _context(text: str, line: int) -> RequestContext:
    status = _RESPONSE.search(text)
    if status is None:
        raise ValueError(f"line {line}: a request without a response")
    code = int(status["status"])
    if status["reason"] != HTTPStatus(code).phrase:
        raise ValueError(f"line {line}: {code} is {HTTPStatus(code).phrase}, not {status['reason']}")
    request_line, _, rest = text[: status.start()].partition("\n")
    method, _, target = request_line.partition(" ")
    headers, body = _message(rest)
    promised_headers, promised_body = _message(text[status.end() :])
    return RequestContext(line, method, target, headers, body, code, promised_headers, promised_body)


def _message(text: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Header lines and body. Blank lines at the end separate requests and belong to neither."""
    head, _, body = (f"\n{text}").partition("\n\n")
    fields = (line.partition(":") for line in head.splitlines() if line)
    return tuple((name.strip().lower(), value.strip()) for name, _, value in fields), body.rstrip("\n")
