"""Output at the end of a test run: summary, coverage, report files, and the exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rowcall.core.testing.coverage import Coverage
from rowcall.core.testing.coverage_documents import cobertura, lcov, listing
from rowcall.core.testing.documents import junit, tap
from rowcall.core.testing.options import TestOptions
from rowcall.core.testing.outcome import ExitCode, FileResult, exit_code
from rowcall.core.testing.report import summary


class Results:
    """The results of a test run. results: of the files. seconds: duration of the whole run."""

    def __init__(self, options: TestOptions, results: Sequence[FileResult], seconds: float) -> None:
        self._options = options
        self._results = results
        self._seconds = seconds

    def report(self, measure: Callable[[], Coverage] | None) -> ExitCode:
        """Print the summary and the coverage, write report files, and return the exit code.

        measure: returns the coverage; None if not all files have run.
        """
        print(f"\n{summary(self._results)}")
        code = exit_code(self._results)
        options = self._options
        coverage = None
        if measure is not None and (self._covers or options.lcov or options.cobertura):
            coverage = measure()
        if coverage is not None and self._covers:
            print("", *coverage.lines(), sep="\n")
            code = self._against_threshold(coverage, code)
        return self._write(coverage) or code

    @property
    def _covers(self) -> bool:
        """Whether the coverage is printed: as `TestRunner:Coverage` says. If that is null: if a threshold is set, or if
        no option excludes tests."""
        options = self._options
        return (
            not options.narrowed
            if options.coverage is None and options.threshold is None
            else options.coverage is not False
        )

    def _against_threshold(self, coverage: Coverage, code: ExitCode) -> ExitCode:
        """Return the exit code: ERRORS if the coverage is below the threshold and `code` is PASSED, otherwise `code`. A
        coverage below the threshold is printed."""
        threshold = self._options.threshold
        if threshold is None or coverage.percent >= threshold:
            return code
        print(f"endpoint coverage {coverage.percent}% is below the threshold {threshold}%", file=sys.stderr)
        return ExitCode.ERRORS if code is ExitCode.PASSED else code

    def _write(self, coverage: Coverage | None) -> ExitCode | None:
        """Write the configured report files. If one cannot be written, print why and return SETUP without writing the
        others; otherwise return None. coverage: None: the reports of the coverage are not written."""
        options = self._options
        texts: list[tuple[str | None, str, Callable[[Path], str]]] = [
            (options.junit, "JUnitOutput", lambda _: junit(self._results, "rowcall", self._seconds)),
            (options.tap, "TapOutput", lambda _: tap(self._results)),
        ]
        if coverage is not None:
            texts += [
                (options.lcov, "LcovOutput", partial(_lcov, coverage)),
                (options.cobertura, "CoberturaOutput", partial(_cobertura, coverage)),
            ]
        for place, key, text in texts:
            if place is None:
                continue
            try:
                Path(place).write_text(text(Path(place)), encoding="utf-8")
            except OSError as error:
                print(f"rowcall: TestRunner:{key}: {place}: {error.strerror or error}", file=sys.stderr)
                return ExitCode.SETUP
        return None


def _lcov(coverage: Coverage, place: Path) -> str:
    """Return the coverage in the form of LCOV, after writing the listing to which it refers. place: path of the report.
    Raises OSError.
    """
    return lcov(coverage, str(_listing(coverage, place)))


def _cobertura(coverage: Coverage, place: Path) -> str:
    """Return the coverage in the form of Cobertura, after writing the listing to which it refers. place: path of the
    report. Raises OSError.
    """
    source = _listing(coverage, place)
    return cobertura(coverage, str(source.parent), source.name, int(time.time() * 1000))


def _listing(coverage: Coverage, place: Path) -> Path:
    """Write the listing of endpoints beside a report and return its path. place: path of the report. Raises OSError."""
    path = place.absolute().with_suffix(".endpoints.txt")
    path.write_text(listing(coverage), encoding="utf-8")
    return path
