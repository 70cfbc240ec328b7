"""Reactions to changed files in watch mode of tests (testing-14, testing-15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rowcall.core.text.globs import matches


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a file. gone: the file was removed."""

    path: str
    """Path in the form in which patterns name it."""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Reaction:
    """What is done after changes. Its truth value is False if nothing is done."""

    rebuild: bool = False
    """The endpoints are read again."""
    everything: bool = False
    """All tests are run."""
    files: frozenset[str] = frozenset()
    """Test files that are run, unless all are."""

    def __bool__(self) -> bool:
        return self.rebuild or self.everything or bool(self.files)


def reaction(changes: Iterable[Change], tests: str, endpoints: str | None, skip: str) -> Reaction:
    """Return which tests are run after these changes, and whether endpoints are read again.

    A changed test runs alone, and a removed one runs nothing; any other change runs all tests. tests: pattern of test
    files. endpoints: pattern of SQL files with endpoints; None: there are no such files. skip: pattern of files that
    are not endpoints although `endpoints` matches.
    """
    rebuild = everything = False
    files: set[str] = set()
    for change in changes:
        if matches(change.path, tests):
            files |= set() if change.gone else {change.path}
        elif endpoints and matches(change.path, endpoints) and not matches(change.path, skip):
            rebuild = everything = True
        else:
            everything = True
    return Reaction(rebuild, everything, frozenset() if everything else frozenset(files))


def delta(before: Iterable[str], after: Iterable[str]) -> Iterator[str]:
    """Yield lines about endpoints: their number, and the added and removed ones. before, after: names such as
    `GET /beds`, before and after endpoints were read again."""
    old, new = set(before), set(after)
    yield f"{len(new)} endpoint(s), before {len(old)}"
    yield from (f"  + {name}" for name in sorted(new - old))
    yield from (f"  - {name}  (is its file or its comment as it should be?)" for name in sorted(old - new))
