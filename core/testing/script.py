"""Parses a test file into steps (testing-4, testing-6): statements, requests, includes, in the order of the file.

Parsing raises no errors: an invalid block becomes a step `InvalidBlock` with the message and its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rowcall.core.sqlfile.commands import copies_to_client
from rowcall.core.sqlfile.splitting import split
from rowcall.core.testing.request import (
    BlockError,
    Expectation,
    HttpBlock,
    Stub,
    read_expected,
    read_request,
    read_stub,
)
from rowcall.core.text.lines import lines_of
from rowcall.core.text.sql_lexer import Kind, tokens

_INCLUDE = re.compile(r"\\(i|ir)[ \t]+(?:'([^'\r\n]+)'|([^\s;']+))[ \t]*;?[ \t]*", re.IGNORECASE)
_NO_COPY = (
    "COPY FROM STDIN and COPY TO STDOUT cannot run in a test; insert or select rows, name a file of the server, or run "
    "psql in a step with Command"
)
_END_OF_LINE = re.compile(r"[^\r\n]*")


@dataclass(frozen=True, slots=True)
class Note:
    """A `--` line before all other content of its file. text: without `--`."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A block comment whose only effect is to end the header."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class SqlStep:
    """A statement of a test file, without comments and semicolon."""

    file: str
    line: int
    text: str
    do_block: bool = False
    """The step is a `DO` with a dollar-quoted body, which is an assertion."""
    expected: Expectation | None = None
    """The `EXPECT` block behind the statement."""

    @property
    def title(self) -> str:
        """The name of the step in reports: the first line of the statement, at most 80 characters; for a DO block
        `assert block (line N)`."""
        if self.do_block:
            return f"assert block (line {self.line})"
        return lines_of(self.text.lstrip())[0].rstrip()[:80]


@dataclass(frozen=True, slots=True)
class HttpStep:
    """A request of a test file."""

    file: str
    line: int
    block: HttpBlock


@dataclass(frozen=True, slots=True)
class StubStep:
    """A block that sets the response of another service to later outgoing requests."""

    file: str
    line: int
    stub: Stub


@dataclass(frozen=True, slots=True)
class JobsStep:
    """The block `RUN JOBS`, which runs the jobs that are due."""

    file: str
    line: int

    title = "RUN JOBS"


@dataclass(frozen=True, slots=True)
class Include:
    """The inclusion of another test file."""

    file: str
    line: int
    path: str
    relative: bool
    """The path is relative to the including file; otherwise to the working directory."""


@dataclass(frozen=True, slots=True)
class InvalidBlock:
    """An invalid block, which cannot run."""

    file: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class ScriptWarning:
    """A line without effect that was probably meant to have one. message: says what to write."""

    file: str
    line: int
    message: str


Step = Note | Remark | ScriptWarning | SqlStep | HttpStep | StubStep | JobsStep | Include | InvalidBlock
"""A part of a test file. file: path of the file for display. line: of its beginning, from 1."""


def read_script(text: str, file: str) -> tuple[Step, ...]:
    """Return the steps of a file. text: its content. file: its path for display."""
    return tuple(_Reader(text, file).steps())


class _Reader:
    """Reads the steps of one test file."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._last: SqlStep | None = None
        """The statement to which an `EXPECT` block would apply; not yielded yet."""
        self._counted = (0, 1)

    def steps(self) -> Iterator[Step]:
        start = position = 0
        begun = header = False
        while position < len(self._text):
            base = position
            position = len(self._text)
            for token in tokens(self._text[base:]):
                at, end = base + token.start, base + token.end
                if token.kind is Kind.SEMICOLON:
                    begun = False
                elif token.kind is Kind.LINE_COMMENT and not header and not begun:
                    yield Note(self._file, self._line(at), self._text[at + 2 : end])
                elif token.kind is Kind.BLOCK_COMMENT and not begun and not header:
                    header = True
                    yield Remark(self._file, self._line(at))
                if token.kind is Kind.BLOCK_COMMENT and not self._is_block(at, end):
                    yield from self._warnings(at, end)
                elif token.kind is Kind.BLOCK_COMMENT:
                    yield from self._statements(start, at)
                    yield from self._block(at, end)
                    start, begun, header = end, False, True
                elif token.kind not in (Kind.SPACE, Kind.LINE_COMMENT, Kind.BLOCK_COMMENT, Kind.SEMICOLON):
                    include = None if begun else self._include(at)
                    if include is not None:
                        step, position = include
                        yield from self._statements(start, at)
                        yield from self._pending_statement()
                        yield step
                        start = position
                        break
                    begun = header = True
        yield from self._statements(start, len(self._text))
        yield from self._pending_statement()

    def _statements(self, start: int, end: int) -> Iterator[Step]:
        for statement in split(self._text[start:end]).statements:
            yield from self._pending_statement()
            line = self._line(start + statement.start)
            if copies_to_client(statement):
                yield InvalidBlock(self._file, line, _NO_COPY)
            else:
                do_block = statement.do_block and statement.words[:1] == ("do",)
                self._last = SqlStep(self._file, line, statement.text, do_block)

    def _pending_statement(self) -> Iterator[SqlStep]:
        """Yield the statement that waits for an `EXPECT` block, if there is one."""
        if self._last is not None:
            yield self._last
        self._last = None

    def _is_block(self, start: int, end: int) -> bool:
        """Return whether the block comment between two offsets is a request, a stub or another block of the test
        language."""
        return kind_of_block(self._text[start + 2 : end - 2]) is not None

    def _warnings(self, start: int, end: int) -> Iterator[ScriptWarning]:
        line = _first_line(self._text[start + 2 : end - 2])
        for like, remedy in _LIKE:
            if line is not None and like.fullmatch(line):
                yield ScriptWarning(self._file, self._line(start), f"{line!r} is a comment without effect; {remedy}")

    def _block(self, start: int, end: int) -> Iterator[Step]:
        inner, line = self._text[start + 2 : end - 2], self._line(start)
        kind = kind_of_block(inner)
        try:
            if kind == "EXPECT":
                yield from self._expect(inner, line)
                return
            yield from self._pending_statement()
            if kind == "STUB":
                yield StubStep(self._file, line, read_stub(inner))
            elif kind == "JOBS":
                yield JobsStep(self._file, line)
            else:
                block = read_request(inner)
                for text in block.ignored:
                    message = f"{text!r} has no effect; known are @claim, @response and @snapshot"
                    yield ScriptWarning(self._file, line, message)
                yield HttpStep(self._file, line, block)
        except BlockError as error:
            yield from self._pending_statement()
            yield InvalidBlock(self._file, line, str(error))

    def _expect(self, inner: str, line: int) -> Iterator[Step]:
        expected, statement = read_expected(inner), self._last
        if statement is None or statement.expected is not None:
            raise BlockError("EXPECT has to follow the statement to which it applies")
        self._last = SqlStep(statement.file, statement.line, statement.text, statement.do_block, expected)
        yield from self._pending_statement()

    def _include(self, position: int) -> tuple[Include, int] | None:
        """Return the include at an offset, and the offset behind its line; None: the line is no include. Blanks may
        precede it."""
        before = self._text[
            max(self._text.rfind("\n", 0, position), self._text.rfind("\r", 0, position)) + 1 : position
        ]
        whole = _END_OF_LINE.match(self._text, position)
        match = _INCLUDE.fullmatch(whole[0]) if whole and not before.strip() else None
        if match is None or whole is None:
            return None
        path = match[2] or match[3]
        return Include(self._file, self._line(position), path, match[1].lower() == "ir"), whole.end()

    def _line(self, position: int) -> int:
        """Return the number of the line at an offset, from 1. Offsets mostly ascend, so counting continues at the
        previous one."""
        start, line = self._counted
        if position < start:
            start, line = 0, 1
        line += self._text.count("\n", start, position)
        self._counted = position, line
        return line


_REQUEST = re.compile(
    r"(?:HTTP[ \t]+)?(?:GET|HEAD|PUT|POST|PATCH|DELETE|QUERY)[ \t]+/\S*(?:[ \t]+HTTP/\S+)?", re.IGNORECASE
)
_STUB = re.compile(r"STUB[ \t]+[A-Z*]+[ \t]+\S+", re.IGNORECASE)
_EXPECT = re.compile(r"EXPECT[ \t]+(?:ROWS|NOTICE|ERROR)\b.*", re.IGNORECASE)
_JOBS = re.compile(r"RUN[ \t]+JOBS", re.IGNORECASE)
_LIKE = (
    (
        re.compile(r"(?:HTTP[ \t]+)?(?:GET|PUT|POST|DELETE|PATCH|HEAD|OPTIONS|QUERY)[ \t]+\S*/\S*(?:[ \t].*)?"),
        "a request line is GET, HEAD, POST, PUT, PATCH, DELETE or QUERY and a path that begins with /, and ends there",
    ),
    (re.compile(r"STUB\b.*"), "a stub begins with STUB, a method and an address"),
    (re.compile(r"RUN[ \t]+JOBS?\b.*", re.IGNORECASE), "the block that runs jobs is RUN JOBS, without further words"),
    (re.compile(r"EXPECT\b.*"), "EXPECT is followed by ROWS, NOTICE or ERROR"),
)
"""First lines of comments that resemble blocks, with the correct form of the block."""


def kind_of_block(inner: str) -> str | None:
    """Return the kind of block that a block comment is: `HTTP`, `STUB`, `JOBS` or `EXPECT`; None: an ordinary comment.

    inner: the comment without `/*` and `*/`. Its first line that is neither blank nor a remark decides.
    """
    text = _first_line(inner)
    if text is None:
        return None
    if _REQUEST.fullmatch(text):
        return "HTTP"
    if _STUB.fullmatch(text):
        return "STUB"
    if _JOBS.fullmatch(text):
        return "JOBS"
    return "EXPECT" if _EXPECT.fullmatch(text) else None


def _first_line(inner: str) -> str | None:
    """Return the first line of a block comment that is neither blank nor a remark (`#` or `//`), trimmed; None: there
    is none."""
    lines = (line.strip() for line in lines_of(inner))
    return next((text for text in lines if text and not text.startswith(("#", "//"))), None)
