"""What came of a run, as data."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Verdict(enum.Enum):
    PASS = "PASS"  # noqa: S105 (no password)
    FAIL = "FAIL"
    ERROR = "ERROR"


class ExitCode(enum.IntEnum):
    """Reference 03, 8.4."""

    PASSED = 0
    FAILED = 1
    ERRORS = 2
    SETUP = 3
    NOTHING = 4


@dataclass(frozen=True, slots=True)
class Assertion:
    """Something that was reported: an assertion, or a step that could not run."""

    name: str
    verdict: Verdict
    file: str
    line: int
    message: str = ""
    sql: str = ""
    """Of what failed; empty where it is no statement."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Notice:
    severity: str
    """As the server has it in every language: `NOTICE`."""
    message: str


@dataclass(frozen=True, slots=True)
class FileResult:
    path: str
    assertions: tuple[Assertion, ...] = ()
    seconds: float = 0.0
    notices: tuple[Notice, ...] = ()

    @property
    def verdict(self) -> Verdict:
        found = {assertion.verdict for assertion in self.assertions}
        if Verdict.ERROR in found:
            return Verdict.ERROR
        return Verdict.FAIL if Verdict.FAIL in found else Verdict.PASS

    @property
    def passed(self) -> bool:
        return self.verdict is Verdict.PASS

    @property
    def milliseconds(self) -> int:
        return round(self.seconds * 1000)


def exit_code(results: Iterable[FileResult]) -> ExitCode:
    found = {result.verdict for result in results}
    if Verdict.ERROR in found:
        return ExitCode.ERRORS
    return ExitCode.FAILED if Verdict.FAIL in found else ExitCode.PASSED
