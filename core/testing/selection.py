"""Which test files run: by name and by tag (testing-2, testing-3)."""

from __future__ import annotations

from collections.abc import Collection

from rowcall.core.text.globs import has_wildcard, matches


def fits_name(path: str, wanted: str) -> bool:
    """path: as shown, from the working directory. wanted: a part of it in any case, or a pattern."""
    if not wanted:
        return True
    if has_wildcard(wanted):
        return matches(path, wanted) or matches(path.removeprefix("./"), wanted)
    return wanted.casefold() in path.casefold()


def fits_tags(tags: Collection[str], wanted: Collection[str], unwanted: Collection[str]) -> bool:
    """All in lower case; what is unwanted wins."""
    if any(tag in unwanted for tag in tags):
        return False
    return not wanted or any(tag in wanted for tag in tags)
