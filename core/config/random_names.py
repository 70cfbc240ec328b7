"""`{rnd1}` to `{rnd10}` and `{rndN_1}` to `{rndN_9}`: placeholders for letters by chance (reference 06, 1.2).

They make names that no other run has, such as that of a database for tests.
"""

from __future__ import annotations

from collections.abc import Callable

LONGEST = 10
OTHERS = 9


def random_names(letters: Callable[[int], str]) -> dict[str, str]:
    """By name of the placeholder. letters: as many lower-case letters as it is asked for."""
    names = {f"rnd{length}": letters(length) for length in range(1, LONGEST + 1)}
    more = {
        f"rnd{length}_{number}": letters(length) for length in range(1, LONGEST + 1) for number in range(1, OTHERS + 1)
    }
    return names | more
