"""Number of generated examples: `make test` uses the same examples in each run, `make thorough` more of them, at
random.

So `make test` never fails by chance; failures that need many examples are found by CI.
"""

from __future__ import annotations

import os
from random import SystemRandom

THOROUGH = bool(os.environ.get("ROWCALL_TEST_THOROUGH"))
_SHARE = 8
_FEWEST = 5


def examples(number: int) -> int:
    """Return the number of examples: all of them in a thorough run, otherwise a share."""
    return number if THOROUGH else min(number, max(number // _SHARE, _FEWEST))


def seed(variable: str) -> int:
    """Return the seed of random choices, which the environment can set to repeat a failed run."""
    return int(os.environ.get(variable) or (SystemRandom().randrange(1, 2**31) if THOROUGH else 1))
