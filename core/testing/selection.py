"""Selection of test files by name and by tag (testing-2, testing-3)."""

from __future__ import annotations

from collections.abc import Collection

from rowcall.core.text.globs import has_wildcard, matches


def fits_name(path: str, pattern: str) -> bool:
    """Return whether a path matches, without regard to case. path: relative to the working directory. pattern: a part
    of the path, or a pattern with wildcards for the whole path; empty: every path matches."""
    if not pattern:
        return True
    if has_wildcard(pattern):
        return matches(path, pattern) or matches(path.removeprefix("./"), pattern)
    return pattern.casefold() in path.casefold()


def fits_tags(tags: Collection[str], included: Collection[str], excluded: Collection[str]) -> bool:
    """Return whether a file with these tags is selected. All tags are in lower case.

    included: the file needs one of them; empty: it needs none. excluded: the file must have none of them, also if it
    has an included one.
    """
    if any(tag in excluded for tag in tags):
        return False
    return not included or any(tag in included for tag in tags)
