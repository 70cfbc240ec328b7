"""Blocks of a test file: a request, an expected response or result of a statement, the response of a stub.

/*
POST /api/beds
# @claim user_id=41

{"kind": "fern"}

HTTP/1.1 200

{"id": "{{integer}}"}
*/
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rowcall.core.testing.placeholders import fits_text
from rowcall.core.text.lines import lines_of

_REQUEST = re.compile(r"(?:HTTP[ \t]+)?(?P<method>\w+)[ \t]+(?P<target>/\S*)(?:[ \t]+HTTP/\S+)?", re.IGNORECASE)
_STATUS = re.compile(r"HTTP/\d(?:\.\d)?[ \t]+(?P<status>\d{3})(?:[ \t].*)?", re.IGNORECASE)
_HEADER = re.compile(r"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*(?P<value>.*)")
_DIRECTIVE = re.compile(r"(?:#|//)\s*@(?P<word>\w+)(?:\s+(?P<rest>.*))?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STUB = re.compile(r"STUB[ \t]+(?P<method>\S+)[ \t]+(?P<url>\S+)", re.IGNORECASE)
_EXPECT = re.compile(r"EXPECT[ \t]+(?P<kind>ROWS|NOTICE|ERROR)(?:[ \t]+(?P<rest>.*))?", re.IGNORECASE)


class BlockError(ValueError):
    """A block is invalid; the message contains the reason."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An expected response, or the response of a stub. headers: as written; an actual response may have others too."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    """None: any body is accepted, or a stub has none."""


@dataclass(frozen=True, slots=True)
class HttpBlock:
    """A request of a test file, and the response that it expects.

    claims: of the user who sends it, as types and values; empty: an anonymous caller. expected: None: any response is
    accepted.
    """

    method: str
    target: str
    """Path with query string."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers as written. If a name is repeated, only the last header is sent (testing-7)."""
    claims: tuple[tuple[str, str], ...] = ()
    table: str | None = None
    """Name of the response table; None: the default name."""
    body: str = ""
    expected: Answer | None = None
    snapshot: bool = False
    """The response is compared with that of an earlier run."""
    ignored: tuple[str, ...] = ()
    """Lines with unknown directives, such as `# @clam user_id=1`."""

    @property
    def title(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Stub:
    """The response to outgoing requests of a method to a URL."""

    method: str
    """`*`: any."""
    url: str
    """URL, which may contain placeholders such as `{{any}}`. A URL without a query matches any query."""
    answer: Answer = field(default_factory=lambda: Answer(200))

    def fits(self, method: str, url: str) -> bool:
        """Return whether the stub responds to a request. method: in upper case. url: with its query."""
        if self.method not in ("*", method):
            return False
        compared_url = url if "?" in self.url else url.partition("?")[0]
        return fits_text(self.url, compared_url)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What an `EXPECT` block requires of the statement before it: rows, a notice (`EXPECT NOTICE text`), or an error
    (`EXPECT ERROR code text`)."""

    kind: str
    """In upper case."""
    text: str = ""
    """Text that a notice or an error has to contain; empty: any."""
    code: str | None = None
    """SQLSTATE of an error; None: any."""
    rows: tuple[str, ...] = ()
    """Rows with cells separated by `|`."""


def read_request(inner: str) -> HttpBlock:
    """Return the request of a block, and the response that it expects. inner: text of a comment that begins with a
    request line.

    Raises BlockError if there is no request line, or if a claim, the name of a table, or a header of the expected
    response is invalid.
    """
    request: re.Match[str] | None = None
    headers: dict[str, tuple[str, str]] = {}
    claims: list[tuple[str, str]] = []
    table: str | None = None
    snapshot = False
    ignored: list[str] = []
    lines = lines_of(inner)
    number = 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text and request is not None:
            break
        if directive := _DIRECTIVE.fullmatch(text):
            word, rest = directive["word"].lower(), (directive["rest"] or "").strip()
            if word == "claim":
                claims.append(_claim(rest))
            elif word == "response":
                table = _table(rest)
            elif word == "snapshot":
                snapshot = True
            else:
                ignored.append(text)
        elif request is None:
            request = _REQUEST.fullmatch(text) or request
        elif _STATUS.fullmatch(text):
            number -= 1
            break
        elif (header := _HEADER.fullmatch(text)) and not text.startswith(("#", "//")):
            headers[header["name"].lower()] = (header["name"], header["value"].strip())
    if request is None:
        raise BlockError("the block has no request line")
    sent, expected = _split_body_and_response(lines[number:])
    return HttpBlock(
        request["method"].upper(),
        request["target"],
        tuple(headers.values()),
        tuple(claims),
        table,
        sent,
        expected,
        snapshot,
        tuple(ignored),
    )


def read_stub(inner: str) -> Stub:
    """Return the stub of a block. Without a response in the block, it responds 200 without a body. inner: text of the
    comment. Raises BlockError if the line `STUB` or the response is invalid."""
    lines = lines_of(inner)
    for number, line in enumerate(lines):
        if match := _STUB.fullmatch(line.strip()):
            before, answer = _split_body_and_response(lines[number + 1 :])
            if before:
                raise BlockError("the response of a stub has to begin with a status line such as HTTP/1.1 200")
            return Stub(match["method"].upper(), match["url"], answer or Answer(200))
    raise BlockError("the stub has no address")


def read_expected(inner: str) -> Expectation:
    """Return the expectation of a block. inner: text of the comment. Raises BlockError if its line `EXPECT` is
    invalid."""
    lines = [line.strip() for line in lines_of(inner)]
    for number, line in enumerate(lines):
        match = _EXPECT.fullmatch(line)
        if match is None:
            continue
        kind, rest = match["kind"].upper(), (match["rest"] or "").strip()
        if kind == "ROWS":
            return Expectation(kind, rows=tuple(row for row in lines[number + 1 :] if row))
        if kind == "NOTICE":
            return Expectation(kind, rest)
        code, _, text = rest.partition(" ")
        if not re.fullmatch(r"[0-9A-Z]{5}", code):
            raise BlockError("EXPECT ERROR needs the SQLSTATE, such as EXPECT ERROR 23505")
        return Expectation(kind, text.strip(), code)
    raise BlockError("EXPECT is followed by ROWS, NOTICE or ERROR")


def _split_body_and_response(lines: list[str]) -> tuple[str, Answer | None]:
    """Return the body of a request, empty if there is none, and the expected response behind it; None: no response is
    expected. lines: behind the headers of the request. Raises BlockError for an invalid header of the response."""
    for number, line in enumerate(lines):
        if match := _STATUS.fullmatch(line.strip()):
            return _join_lines(lines[:number]), _answer(int(match["status"]), lines[number + 1 :])
    return _join_lines(lines), None


def _answer(status: int, lines: list[str]) -> Answer:
    headers: list[tuple[str, str]] = []
    for number, line in enumerate(lines):
        if not line.strip():
            return Answer(status, tuple(headers), _join_lines(lines[number + 1 :]) or None)
        header = _HEADER.fullmatch(line.strip())
        if header is None:
            raise BlockError(f"{line.strip()!r} is not a header; an empty line has to precede a body")
        headers.append((header["name"], header["value"].strip()))
    return Answer(status, tuple(headers))


def _join_lines(lines: list[str]) -> str:
    return "\n".join(lines).strip()


def _claim(rest: str) -> tuple[str, str]:
    name, equals, value = rest.partition("=")
    if not equals or not name.strip():
        raise BlockError("a claim is written as # @claim name=value")
    return name.strip(), value.strip()


def _table(rest: str) -> str:
    if not is_table_name(rest):
        raise BlockError(f"{rest!r} is not a name for a response table: use letters, digits and _")
    return rest


def is_table_name(text: str) -> bool:
    """Return whether the text can be the name of a response table: ASCII letters, digits and `_`, not beginning with a
    digit."""
    return _NAME.fullmatch(text) is not None
