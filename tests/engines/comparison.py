"""Compares the engines over many streams: counts, what no class explains, and where to go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path

from tests.engines.differences import Difference, class_of, difference
from tests.engines.sending import outcomes
from tests.engines.streams import Stream, numbered

SILENCE = 0.3
MOST = 300
"""Streams at a time, for each engine."""
_AGAIN_SILENCE = 2.0
_AGAIN = 3
"""A difference that no class explains is one if it shows each of these times, with a longer silence."""


@dataclass(slots=True)
class Progress:
    """What a run has reached. next_number: of the first stream that was not sent; unexplained: as text."""

    seed: int
    next_number: int = 0
    sent: int = 0
    split: int = 0
    """Of the sent ones, splits of a stream at each of its positions."""
    classes: dict[str, int] = field(default_factory=dict)
    """Differences by class."""
    unexplained: list[str] = field(default_factory=list)
    not_repeated: int = 0
    """Differences that did not show again: the machine was slower than the silence."""

    @classmethod
    def load(cls, file: Path, seed: int) -> Progress:
        """Read the progress of a former run with the same seed, or begin a new one."""
        if not file.exists():
            return cls(seed)
        stored = json.loads(file.read_text())
        if stored["seed"] != seed:
            raise ValueError(f"{file} is of seed {stored['seed']}, not {seed}")
        return cls(**stored)

    def save(self, file: Path) -> None:
        unfinished = file.with_suffix(".new")
        unfinished.write_text(json.dumps(asdict(self), indent=1))
        unfinished.replace(file)

    def count(self, name: str) -> None:
        self.classes[name] = self.classes.get(name, 0) + 1

    def text(self) -> str:
        counts = [f"{count:9,} {name}" for name, count in sorted(self.classes.items(), key=lambda item: -item[1])]
        same = self.sent - sum(self.classes.values()) - len(self.unexplained) - self.not_repeated
        return "\n".join(
            [
                f"seed {self.seed}, {self.next_number:,} streams: {self.sent:,} sent, of these {self.split:,} splits",
                f"{same:9,} without a difference",
                *counts,
                f"{self.not_repeated:9,} that did not show again",
                f"{len(self.unexplained):9,} unexplained",
                *self.unexplained[:50],
            ]
        )


def recheck(ports: tuple[int, int], progress: Progress) -> None:
    """Send the streams of unexplained differences again: a class may have been added, or a fault removed."""
    former, progress.unexplained = progress.unexplained, []
    for text in former:
        number, part = map(int, text.partition(" ")[0].split("."))
        _look_again(ports, progress, next(islice(numbered(progress.seed, number), part, None)))


def advance(ports: tuple[int, int], progress: Progress, numbers: int) -> None:
    """Send the next streams, this many and their splits. ports: of the event loop's server and of granian."""
    last = progress.next_number + numbers
    unclear: list[Stream] = []
    for stream, auto, granian in outcomes(ports, _streams(progress, last), silence=SILENCE, most=MOST):
        progress.sent += 1
        progress.split += stream.part > 0
        found = difference(stream.data, auto, granian)
        if found is None:
            continue
        name = class_of(found)
        if name is None:
            unclear.append(stream)
        else:
            progress.count(name)
    for stream in unclear:
        _look_again(ports, progress, stream)
    progress.next_number = last


def _streams(progress: Progress, last: int) -> Iterator[Stream]:
    return chain.from_iterable(numbered(progress.seed, number) for number in range(progress.next_number, last))


def _look_again(ports: tuple[int, int], progress: Progress, stream: Stream) -> None:
    found: Difference | None = None
    for _ in range(_AGAIN):
        _, auto, granian = next(islice(outcomes(ports, [stream], silence=_AGAIN_SILENCE, most=1), 1))
        found = difference(stream.data, auto, granian)
        if found is None:
            progress.not_repeated += 1
            return
        name = class_of(found)
        if name is not None:
            progress.count(name)
            return
    assert found is not None
    progress.unexplained.append(f"{stream.number}.{stream.part} {found.places} {found.detail!r} {stream.pieces!r}")
