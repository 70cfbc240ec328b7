"""The results of a run, as data."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Verdict(enum.Enum):
    """Result of an assertion, or of a file."""

    PASS = "PASS"  # noqa: S105 (no password)
    FAIL = "FAIL"
    ERROR = "ERROR"


class ExitCode(enum.IntEnum):
    """Exit code of `rowcall --test`."""

    PASSED = 0
    FAILED = 1
    """An assertion has failed, and there was no error."""
    ERRORS = 2
    """A file could not run to its end, or the coverage is below its threshold."""
    SETUP = 3
    """The run could not be prepared."""
    NOTHING = 4
    """There are no tests."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """A reported result: of an assertion, or of a step that could not run. line: from 1. message: empty: there is
    none."""

    name: str
    verdict: Verdict
    file: str
    line: int
    message: str = ""
    sql: str = ""
    """The failed statement; empty if it was not a statement."""

    @property
    def place(self) -> str:
        """File and line, for messages."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice that the database has sent during a file."""

    severity: str
    """Severity in English, such as `NOTICE`."""
    message: str


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result of one test file. path: for display. seconds: duration of its run."""

    path: str
    assertions: tuple[Assertion, ...] = ()
    seconds: float = 0.0
    notices: tuple[Notice, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst result of an assertion in the file; PASS without assertions."""
        verdicts = {assertion.verdict for assertion in self.assertions}
        if Verdict.ERROR in verdicts:
            return Verdict.ERROR
        return Verdict.FAIL if Verdict.FAIL in verdicts else Verdict.PASS

    @property
    def passed(self) -> bool:
        return self.verdict is Verdict.PASS

    @property
    def milliseconds(self) -> int:
        return round(self.seconds * 1000)


def exit_code(results: Iterable[FileResult]) -> ExitCode:
    """Return the exit code for the results of all files: ERRORS if one has an error, else FAILED if one has failed,
    else PASSED, also if there are no files."""
    verdicts = {result.verdict for result in results}
    if Verdict.ERROR in verdicts:
        return ExitCode.ERRORS
    return ExitCode.FAILED if Verdict.FAIL in verdicts else ExitCode.PASSED
