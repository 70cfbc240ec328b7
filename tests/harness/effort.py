"""How far a run goes: `make test` looks at everything in the same way each time, `make thorough` draws more, at random.

A failure of `make test` is therefore never one of chance; what only many examples find is found by CI.
"""

from __future__ import annotations

import os
from random import SystemRandom

THOROUGH = bool(os.environ.get("ROWCALL_TEST_THOROUGH"))
_SHARE = 8
_FEWEST = 5


def examples(number: int) -> int:
    """Of this many, which a thorough run draws, those that every run draws."""
    return number if THOROUGH else min(number, max(number // _SHARE, _FEWEST))


def seed(variable: str) -> int:
    """What random choices begin with, unless the environment names it: a failure tells it, and it repeats the run."""
    return int(os.environ.get(variable) or (SystemRandom().randrange(1, 2**31) if THOROUGH else 1))
