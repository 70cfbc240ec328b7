"""Parts shared by the targets: mutations of their seeds, a loop that needs no other tool, and rows from bytes.

If atheris is installed, its coverage-guided engine drives a target (and takes its own arguments); otherwise the loop
here does, for the given number of seconds (default 10).
"""

from __future__ import annotations

import importlib
import random
import sys
import time
from collections.abc import Callable, Sequence

Check = Callable[[bytes], None]
Cells = list[list[bytes | None]]

ROW_END, CELL_END = b"\x1e", b"\x1f"


def cells_of(text: bytes) -> tuple[Cells, int]:
    """Return rows cut at 0x1E and 0x1F, without NUL, and the number of columns; an empty cell is NULL."""
    rows = [row.split(CELL_END) for row in text.replace(b"\0", b"").split(ROW_END)]
    width = max(map(len, rows))
    return [[cell or None for cell in row] + [None] * (width - len(row)) for row in rows], width


def mutate(data: bytes, syntax: Sequence[bytes], dice: random.Random) -> bytes:
    for _ in range(dice.randint(1, 4)):
        start = dice.randint(0, len(data))
        end = min(len(data), start + dice.choice((0, 0, 1, 1, 2, 8)))
        inserted = dice.choice((dice.choice(syntax), data[start : start + dice.randint(0, 12)], dice.randbytes(1), b""))
        data = data[:start] + inserted + data[end:]
    return data[:2000]


def with_choices(texts: Sequence[bytes], count: int = 2) -> list[bytes]:
    """Return seeds for a target that uses the first `count` bytes as choices: each text with several of them."""
    dice = random.Random(0)
    return [dice.randbytes(count) + text for text in texts for _ in range(8)]


def run(check: Check, seeds: Sequence[bytes], syntax: Sequence[bytes], seconds: float, seed: int | None = None) -> int:
    """Mutate the seeds and their descendants until the time is over; return the number of inputs."""
    dice = random.Random(seed)
    pool = list(seeds)
    stored = len(pool)
    end = time.monotonic() + seconds
    tried = 0
    while time.monotonic() < end:
        data = mutate(dice.choice(pool), syntax, dice)
        try:
            check(data)
        except Exception:
            print(f"failing input: {data!r}", file=sys.stderr)
            raise
        tried += 1
        if len(pool) < 500:
            pool.append(data)
        elif dice.random() < 0.05:
            pool[dice.randrange(stored, len(pool))] = data
    return tried


def main(check: Check, seeds: Sequence[bytes], syntax: Sequence[bytes]) -> None:
    try:
        atheris = importlib.import_module("atheris")
    except ImportError:
        seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
        print(f"{run(check, seeds, syntax, seconds)} inputs in {seconds:g} s")
        return
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()
