"""Report of a run as lines for the terminal (testing-11).

Characters of responses, notices and test files that could affect the terminal are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rowcall.core.testing.outcome import Assertion, FileResult, Verdict
from rowcall.core.text.lines import lines_of, printable_line

SQL_SHOWN = 120
_RESET = "\x1b[0m"
_COLOURS = {Verdict.PASS: "\x1b[32m", Verdict.FAIL: "\x1b[31m", Verdict.ERROR: "\x1b[35m"}
_GREY = "\x1b[90m"


@dataclass(frozen=True, slots=True)
class Style:
    """The appearance of a report."""

    detailed: bool = False
    """Show passed assertions, whole statements, and notices of files that pass."""
    colour: bool = False

    def paint(self, text: str, colour: str) -> str:
        """Return the text in a colour, if colours are on. colour: escape sequence of the terminal."""
        return f"{colour}{text}{_RESET}" if self.colour else text


def head(count: int) -> str:
    """Return the first line of a report. count: number of files."""
    return f"rowcall test — {_format_count(count, 'file')}"


def file_lines(result: FileResult, style: Style) -> Iterator[str]:
    """Yield the lines about one file: its verdict, its assertions that did not pass, and its notices if it did not
    pass. With `style.detailed`, all assertions and notices."""
    verdict = result.verdict
    word = style.paint(f"{verdict.value:<5}", _COLOURS[verdict])
    yield f"{word} {printable_line(result.path)}  ({_measure(result)})"
    for assertion in result.assertions:
        if style.detailed or assertion.verdict is not Verdict.PASS:
            yield from _assertion_lines(assertion, style)
    if style.detailed or not result.passed:
        for notice in result.notices:
            first, *more = _printable_lines(notice.message) or [""]
            yield f"        {notice.severity.lower()}: {first}"
            yield from (f"          {line}" for line in more)


def _measure(result: FileResult) -> str:
    if not result.passed:
        return f"{result.milliseconds}ms"
    count = len(result.assertions)
    return f"{_format_count(count, 'assertion') if count else 'no assertions'}, {result.milliseconds}ms"


def _assertion_lines(assertion: Assertion, style: Style) -> Iterator[str]:
    passed = assertion.verdict is Verdict.PASS
    sign = style.paint("✓" if passed else "✗", _COLOURS[assertion.verdict])
    yield f"        {sign} {printable_line(assertion.name)}  [{printable_line(assertion.place)}]"
    if assertion.message and assertion.message != assertion.name:
        yield from (f"          {_color_line(line, style)}" for line in _printable_lines(assertion.message))
    if assertion.sql and not passed:
        yield from (f"        {style.paint(line, _GREY)}" for line in _sql_lines(assertion.sql, style))


def _printable_lines(text: str) -> list[str]:
    return [printable_line(line) for line in lines_of(text)]


def _color_line(line: str, style: Style) -> str:
    if line.startswith("-") and not line.startswith("---"):
        return style.paint(line, "\x1b[31m")
    if line.startswith("+") and not line.startswith("+++"):
        return style.paint(line, "\x1b[32m")
    return line


def _sql_lines(sql: str, style: Style) -> list[str]:
    lines = [line.rstrip() for line in _printable_lines(sql.strip())]
    if style.detailed or not lines:
        return lines
    first = lines[0]
    if len(first) > SQL_SHOWN:
        return [f"{first[:SQL_SHOWN]} …"]
    return [f"{first} …" if len(lines) > 1 else first]


def summary(results: Sequence[FileResult]) -> str:
    """Return the last line of a report: numbers of files by verdict, and of assertions."""
    by_verdict = {verdict: sum(result.verdict is verdict for result in results) for verdict in Verdict}
    assertions = sum(len(result.assertions) for result in results)
    return (
        f"{by_verdict[Verdict.PASS]} passed, {by_verdict[Verdict.FAIL]} failed, {by_verdict[Verdict.ERROR]} error(s)"
        f"  —  {_format_count(assertions, 'assertion')} in {_format_count(len(results), 'file')}"
    )


def _format_count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
