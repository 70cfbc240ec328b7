"""Finds and reads test files; included files are inserted (testing-4)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from rowcall.core.testing.header import Header, read_header
from rowcall.core.testing.options import TestOptions
from rowcall.core.testing.script import Include, InvalidBlock, Note, Remark, ScriptWarning, Step, read_script
from rowcall.core.testing.selection import fits_name, fits_tags
from rowcall.service.discovery.files import decode, find_files

DEEPEST = 16
"""Maximum depth of files that include files."""


@dataclass(frozen=True)
class TestFile:
    """A test file as it was read."""

    __test__ = False

    path: str
    steps: tuple[Step, ...]
    """The steps, with those of included files in place."""

    @cached_property
    def header(self) -> Header:
        """The directives in the header of the file."""
        return read_header(self.steps)

    @property
    def readable(self) -> bool:
        """Whether the file has no block that cannot be read."""
        return not any(isinstance(step, InvalidBlock) for step in self.steps)


def find_tests(options: TestOptions) -> list[str]:
    """Return the paths of the test files that match `FilePattern` and `Filter`, sorted."""
    return [path for path in find_files(options.pattern, "") if fits_name(path, options.filter)]


def select_files(files: Iterator[TestFile], options: TestOptions) -> list[TestFile]:
    """Return the files that match by tags. A file with a block that cannot be read stays in the list, so that the run
    reports its error."""
    return [
        file for file in files if not file.readable or fits_tags(file.header.tags, options.tags, options.unwanted_tags)
    ]


def read_test(path: str) -> TestFile:
    """Return the file, with included files in place. What cannot be read becomes an `InvalidBlock` among its steps."""
    return TestFile(path, tuple(_steps_of_file(path, ())))


def _steps_of_file(path: str, above: tuple[str, ...]) -> Iterator[Step]:
    """Yield the steps of a file and of the files that it includes; an error is a step too. above: real paths of the
    files that include this one.
    """
    try:
        with open(path, "rb") as file:
            content = decode(path, file.read())
    except OSError as error:
        yield InvalidBlock(path, 1, f"it cannot be read: {error.strerror or error}")
        return
    if content.error is not None:
        yield InvalidBlock(path, content.line or 1, content.error)
        return
    for step in read_script(content.text, path):
        if isinstance(step, Include):
            yield from _steps_of_include(step, (*above, os.path.realpath(path)))
        else:
            yield step


def _steps_of_include(include: Include, above: tuple[str, ...]) -> Iterator[Step]:
    """Yield the steps of an included file; an error is a step too. above: real paths of the files that include it, the
    outermost first.
    """
    path = include.path
    if include.relative:
        path = os.path.normpath(os.path.join(os.path.dirname(include.file), path))
    if os.path.realpath(path) in above:
        yield InvalidBlock(include.file, include.line, f"{path} includes itself")
    elif len(above) > DEEPEST:
        yield InvalidBlock(include.file, include.line, f"files include files more than {DEEPEST} deep")
    elif not os.path.isfile(path):
        problem = "is no file" if os.path.exists(path) else "does not exist"
        yield InvalidBlock(include.file, include.line, f"the included file {path} {problem}")
    else:
        yield from _steps_of_file(path, above)


def runnable(file: TestFile) -> tuple[Step, ...]:
    """Return the steps of a file without those that only describe it: notes, remarks and warnings. A block that cannot
    be read (`InvalidBlock`) stays, so that its error is reported."""
    return tuple(step for step in file.steps if not isinstance(step, Note | Remark | ScriptWarning))


def warnings(file: TestFile) -> Iterator[ScriptWarning]:
    """Yield the warnings about the header and the steps of a file."""
    yield from file.header.warnings
    yield from (step for step in file.steps if isinstance(step, ScriptWarning))


def isolation_of(file: TestFile, options: TestOptions) -> str:
    """Return the isolation that the header of the file or the configuration chooses, in lower case. It is not
    validated.
    """
    return file.header.isolation or options.isolation


def connection_key(file: TestFile) -> str:
    """Return a key that is equal for files that run on the same database."""
    return (file.header.connection or "").casefold()
