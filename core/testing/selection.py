"""Selection of test files by name and by tag (testing-2, testing-3)."""

from __future__ import annotations

from collections.abc import Collection

from rowcall.core.text.globs import has_wildcard, matches


def fits_name(path: str, wanted: str) -> bool:
    """Return whether a path matches. path: relative to the working directory. wanted: a part of it in any case, or a
    pattern."""
    if not wanted:
        return True
    if has_wildcard(wanted):
        return matches(path, wanted) or matches(path.removeprefix("./"), wanted)
    return wanted.casefold() in path.casefold()


def fits_tags(tags: Collection[str], wanted: Collection[str], unwanted: Collection[str]) -> bool:
    """Return whether tags match, all in lower case. Unwanted tags take precedence."""
    if any(tag in unwanted for tag in tags):
        return False
    return not wanted or any(tag in wanted for tag in tags)
