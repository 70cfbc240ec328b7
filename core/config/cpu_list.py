"""Parse lists of processor cores in the form of the Linux kernel and taskset: `0-3,6` (cpuset(7), "List format")."""

from __future__ import annotations

import re

_PART = re.compile(r"(\d{1,5})(?:-(\d{1,5})(?::(\d{1,5}))?)?")
"""A core, a range, or every nth core of a range: `0-15:2`."""


def parse_cpu_groups(text: str) -> tuple[frozenset[int], ...]:
    """Return the groups of cores, each as numbers of cores from 0: `0-3;4-7` is two groups, `0-3,6` is one. Raises
    ValueError with the reason if the text is not such a list."""
    return tuple(_parse_group(group.strip()) for group in text.split(";"))


def _parse_group(text: str) -> frozenset[int]:
    result: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part.strip()!r} is neither a core such as 6 nor a range such as 0-3")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or not step:
            raise ValueError(f"{part.strip()!r} is an empty range")
        result.update(range(first, last + 1, step))
    return frozenset(result)
