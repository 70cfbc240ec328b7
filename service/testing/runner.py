"""Runs test files in parallel, one for each caller, and reports them in the order of their paths."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from rowcall.core.testing.outcome import FileResult
from rowcall.core.testing.report import Style, file_lines
from rowcall.service.testing.calls import Caller
from rowcall.service.testing.file_runner import FileRunner, RunContext
from rowcall.service.testing.files import TestFile

_CLEAR = "\r\x1b[K"


class Progress:
    """Prints results in the order of the paths, and in a terminal the progress. paths: of the files to run. out: where
    it prints; None: standard output.
    """

    def __init__(self, paths: Sequence[str], style: Style, out: TextIO | None = None) -> None:
        self._waiting = deque(paths)
        self._count = len(paths)
        self._style = style
        self._out = out or sys.stdout
        self._terminal = self._out.isatty()
        self._done: dict[str, FileResult] = {}
        self._failed = 0

    def add(self, result: FileResult) -> None:
        """Record the result of a file, and print the results that are next in order."""
        self._done[result.path] = result
        self._failed += not result.passed
        self._clear()
        while self._waiting and self._waiting[0] in self._done:
            self._print(self._done[self._waiting.popleft()])
        if self._terminal and len(self._done) < self._count:
            failed = f", {self._failed} not passed" if self._failed else ""
            self._out.write(f"{len(self._done)}/{self._count}{failed}")
            self._out.flush()

    def finish(self) -> None:
        """Print the results that were held back because a file in front of them did not run."""
        self._clear()
        for path in self._waiting:
            if path in self._done:
                self._print(self._done[path])
        self._waiting.clear()
        self._out.flush()

    def _print(self, result: FileResult) -> None:
        for line in file_lines(result, self._style):
            self._out.write(f"{line}\n")

    def _clear(self) -> None:
        if self._terminal:
            self._out.write(_CLEAR)


class Runner:
    """Runs test files, and remembers those that did not pass.

    means: the objects that all files share. callers: each runs one file at a time, so their number is the maximum
    number of files that run at the same time.
    """

    def __init__(self, means: RunContext, callers: Sequence[Caller]) -> None:
        self._means = means
        self._callers = callers
        self._failed: set[str] = set()
        """Files that did not pass in their last run, also in that of an earlier process."""

    async def run(self, files: Sequence[TestFile], progress: Progress) -> list[FileResult]:
        """Run the files and return the results sorted by path. Files that did not pass in the last run begin first.
        With `FailFast`, files that have not begun when one fails are not run and have no result.
        """
        self._failed |= _read_failed_paths(self._means.options.failed_first)
        waiting = deque(sorted(files, key=lambda file: (file.path not in self._failed, file.path)))
        results: list[FileResult] = []
        try:
            async with asyncio.TaskGroup() as group:
                for caller in self._callers[: max(1, len(waiting))]:
                    group.create_task(self._take(waiting, caller, results, progress))
        finally:
            progress.finish()
            self._remember(results)
        return sorted(results, key=lambda result: result.path)

    async def _take(
        self, waiting: deque[TestFile], caller: Caller, results: list[FileResult], progress: Progress
    ) -> None:
        """Run files with one caller until none waits or, with `FailFast`, one has not passed. Files are taken from
        `waiting`, results added to `results`."""
        while waiting:
            if self._means.options.fail_fast and not all(result.passed for result in results):
                return
            result = await FileRunner(self._means, caller, waiting.popleft()).run()
            results.append(result)
            progress.add(result)

    def _remember(self, results: Iterable[FileResult]) -> None:
        """Record which files did not pass, also in the file of the configuration, if there is one. Files that did not
        run stay as they were, unless they no longer exist."""
        for result in results:
            (self._failed.discard if result.passed else self._failed.add)(result.path)
        self._failed = {path for path in self._failed if os.path.isfile(path)}
        place = self._means.options.failed_first
        if place is not None:
            with contextlib.suppress(OSError):
                Path(place).write_text(json.dumps(sorted(self._failed)), encoding="utf-8")


def _read_failed_paths(place: str | None) -> set[str]:
    """Return the paths of the files that did not pass in their last run. place: path of the file in which they were
    written. Empty if that is None or cannot be read.
    """
    if place is None:
        return set()
    try:
        paths = json.loads(Path(place).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {str(path) for path in paths} if isinstance(paths, list) else set()
