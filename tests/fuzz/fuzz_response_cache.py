"""Fuzz the table of cached responses: the views of two processes on one small memory, compared with a dictionary.

Every lookup returns the response that was stored last; none that has ended, was invalidated, or was begun before an
invalidation is returned; only the oldest ones are missing if memory was needed. Then the memory is overwritten: no read
leaves it, no call runs for ever, and after clearing it works again.

python -m tests.fuzz.fuzz_response_cache [seconds]

Reads out of bounds are detected if the extensions are built with ASAN=1 and Python runs with PYTHONMALLOC=malloc.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field

from rowcall.core.cache.entry import Entry
from rowcall.ext.response_cache.table import AWAITED, FULL, GONE, HELD, INVALIDATED, LEAST, SPLIT, ResponseTable
from tests.fuzz.mutation import main

SIZES = (LEAST,) * 4 + (LEAST + 4096 * 3 + 77, 1 << 18, 1 << 20, SPLIT)
BODIES = (0, 0, 1, 7, 40, 110, 135, 136, 137, 251, 252, 253, 700, 1000, 4001, 12_000, 60_000, 100_000, 2 << 20)
KEYS = (0, 1, 2, 7, 15, 16, 90, 135, 136, 137, 388, 389, 1023, 1025, 30_000)
TAGS = (*(f"tag {number}" for number in range(24)), "", "zwölf", "x" * 300)
LOCK = 64
"""Bytes in front, which belong to the lock: the process that writes to them holds it."""
HEAD = 4096
FIRST, FURTHER = 136, 252
"""Bytes of a response in its first block, and in each further one."""
KNOWN = 3600.0
"""Seconds for which the time of the invalidation of a tag is known."""


class Choices:
    """Bytes as decisions. `over` is set when none are left."""

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)
        self.over = False

    def of(self, count: int) -> int:
        byte = next(self._data, None)
        if byte is None:
            self.over = True
            return 0
        return byte % count


@dataclass
class Lease:
    process: int
    number: int
    began: float
    ends: float
    awaited: bool = False


@dataclass
class Judge:
    """Model of what lookups may and must return. entries: the newest is the last, including ended ones."""

    entries: dict[bytes, Entry] = field(default_factory=dict)
    leases: dict[bytes, Lease] = field(default_factory=dict)
    forgotten: dict[bytes, float] = field(default_factory=dict)
    forgotten_tags: dict[str, float] = field(default_factory=dict)

    @property
    def marks(self) -> int:
        return len(self.forgotten) + len(self.forgotten_tags)

    @property
    def blocks(self) -> int:
        """Maximum number of used blocks."""
        tags = {tag for entry in self.entries.values() for tag in entry.tags} | self.forgotten_tags.keys()
        return sum(blocks_of(*item) for item in self.entries.items()) + len(tags) + len(self.forgotten)


def blocks_of(key: bytes, entry: Entry) -> int:
    """Return the blocks of a response without those of its tags, which others may share."""
    length = len(key) + len(entry.body) + len(entry.head) + len("\n".join(entry.tags).encode())
    return 1 + -(-max(0, length - FIRST) // FURTHER) + -(-len(entry.tags) // 15)


def room_of(size: int) -> int:
    """Return the number of blocks of a shard."""
    buckets = 64
    while buckets * 1024 < size:
        buckets *= 2
    leases = min(512, max(64, size >> 14)) * 8
    return (size - HEAD - leases * 40 - 4096 * 4 - buckets * 4) // 256 - 1


class Trial:
    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        size = SIZES[choices.of(len(SIZES))]
        self.shards = 8 if size >= SPLIT else 1
        self.room = room_of(size // self.shards // HEAD * HEAD)
        self.memory = bytearray(size)
        self.tables = [ResponseTable(self.memory, process, Entry) for process in (1, 2)]
        self.judge = Judge()
        self.at = 1000.0

    # --- choices ----------------------------------------------------------------------------------------------------

    @property
    def process(self) -> int:
        return self.choices.of(2)

    @property
    def table(self) -> ResponseTable[Entry]:
        return self.tables[self.process]

    @property
    def key(self) -> bytes:
        length = KEYS[self.choices.of(len(KEYS))]
        return bytes([self.choices.of(4) + 65]) * length

    @property
    def entry(self) -> Entry:
        body = bytes([self.choices.of(256)]) * BODIES[self.choices.of(len(BODIES))]
        how = self.choices.of(16)
        ends = (0.0, self.at + 0.01 * how, self.at + 3 * how, self.at + 400 * how)[how % 4]
        tags: tuple[str, ...] = ()
        if how > 9:
            first = self.choices.of(len(TAGS))
            tags = (TAGS[first:] + TAGS[:first])[: self.choices.of(len(TAGS) + 1)]
        if tags == ("",):
            tags = ()
        return Entry(body, how, how % 5 == 0, self.at, ends, self.at + how * (how % 3), b'["head"]' * (how // 3), tags)

    # --- properties -------------------------------------------------------------------------------------------------

    def is_live(self, key: bytes) -> bool:
        entry = self.judge.entries.get(key)
        return entry is not None and not (entry.ends and self.at >= entry.ends)

    def is_over(self, lease: Lease) -> bool:
        """It may have been given to another process."""
        return lease.ends != 0 and self.at >= lease.ends

    def is_invalidated(self, tags: tuple[str, ...], began: float) -> bool:
        return any(self.judge.forgotten_tags.get(tag, 0.0) >= began for tag in tags)

    def has_room(self, more: int = 0) -> bool:
        return self.judge.blocks + more <= self.room

    def look_who_had_to_go(self) -> None:
        """Check that the removed responses were the oldest, and memory was needed."""
        stored = False
        for key in list(self.judge.entries):
            result = self.tables[0].find(key, self.at)
            if not self.is_live(key):
                assert result is None
            elif result is not None:
                assert result == self.judge.entries[key]
                stored = True
            else:
                assert not stored or self.shards > 1, "an older one was kept"
                del self.judge.entries[key]

    def note(self, key: bytes, entry: Entry) -> None:
        """Record that the response was stored."""
        self.judge.entries.pop(key, None)
        self.judge.entries[key] = entry
        # Each tag may be a new one when blocks are freed.
        if not self.has_room(len(entry.tags)):
            if self.is_live(key) and self.table.find(key, self.at) is None:
                # It was too large, and no other request waited for it.
                del self.judge.entries[key]
                assert blocks_of(key, entry) + len(entry.tags) >= self.room
            self.look_who_had_to_go()
        elif self.is_live(key):
            assert self.table.find(key, self.at) == entry

    # --- steps ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        steps = (
            *(self.keep, self.keep, self.store, self.store, self.find, self.find, self.begin, self.begin, self.end),
            self.has,
            self.forget,
            self.forget,
            self.invalidate_tag,
            self.invalidate_all,
            self.prune,
            self.wait,
            self.die,
        )
        while not self.choices.over:
            steps[self.choices.of(len(steps))]()
        if self.has_room():
            assert all(self.table.find(key, self.at) for key in self.judge.entries if self.is_live(key))

    def empty(self) -> None:
        self.tables[0].invalidate_all(b"")
        assert self.tables[1].count == 0
        assert self.tables[1].used <= self.judge.marks * 256 * self.shards, "only marks are left"

    def keep(self) -> None:
        process, key = self.process, self.key
        if self.taken(process, key):
            self.land(process, key)

    def begin(self) -> None:
        seconds, fresh = (0.0, 0.0, 0.5, 20.0)[self.choices.of(4)], self.choices.of(2) == 1
        self.taken(self.process, self.key, seconds, fresh=fresh)

    def taken(self, process: int, key: bytes, seconds: float = 0.0, *, fresh: bool = False) -> bool:
        """Acquire a lease."""
        ends = self.at + seconds if seconds else 0.0
        result = self.tables[process].begin(key, ends, self.at, fresh)
        if self.is_live(key):
            entry = self.judge.entries[key]
            if not (fresh and entry.fresh and self.at >= entry.fresh):
                assert result == entry
                return False
        assert isinstance(result, int)
        lease = self.judge.leases.get(key)
        if lease is not None and not self.is_over(lease):
            assert result == HELD
            lease.awaited = lease.awaited or lease.process != process
            return False
        if result == FULL:
            return False
        assert result > 0
        self.judge.leases[key] = Lease(process, result, self.at, ends)
        return True

    def end(self) -> None:
        """A valid lease, of its holder or of another process."""
        if not self.judge.leases:
            return
        key = list(self.judge.leases)[self.choices.of(len(self.judge.leases))]
        lease = self.judge.leases[key]
        process = lease.process if self.choices.of(8) else 1 - lease.process
        if self.choices.of(3):
            self.land(process, key)
            return
        message = self.tables[process].release(key, lease.number)
        if process != lease.process:
            assert message == GONE
            return
        assert message == lease.awaited * AWAITED or (message == GONE and self.is_over(lease))
        del self.judge.leases[key]

    def land(self, process: int, key: bytes) -> None:
        lease, entry = self.judge.leases[key], self.entry
        message = self.tables[process].store_and_release(key, lease.number, lease.began, entry, self.at)
        if process != lease.process:
            assert message == GONE
            return
        del self.judge.leases[key]
        if message == GONE:
            assert self.is_over(lease)
            return
        assert bool(message & AWAITED) == lease.awaited
        if message & INVALIDATED:
            # Marks that were removed apply to all tags.
            assert entry.tags
            assert self.judge.marks
            return
        assert not self.is_invalidated(entry.tags, max(lease.began, self.at - KNOWN))
        if entry.ends == 0 or entry.ends > entry.written:
            self.note(key, entry)

    def store(self) -> None:
        process, key, entry = self.process, self.key, self.entry
        began = self.at - self.choices.of(3)
        message = self.tables[process].store(key, entry, began, self.at)
        if self.judge.forgotten.get(key, 0.0) >= began or self.is_invalidated(entry.tags, began):
            assert not message
        elif message:
            self.note(key, entry)
        elif self.is_live(key) and self.tables[process].find(key, self.at) == self.judge.entries[key]:
            assert self.judge.marks, "something was forgotten since"
        else:
            self.judge.entries.pop(key, None)
            assert self.judge.marks or blocks_of(key, entry) + len(entry.tags) >= self.room

    def find(self) -> None:
        key = self.key
        result = self.table.find(key, self.at)
        assert result == (self.judge.entries[key] if self.is_live(key) else None)
        assert result is None or type(result) is Entry

    def has(self) -> None:
        process, key = self.process, self.key
        lease = self.judge.leases.get(key)
        has = self.tables[process].holds_lease(key, lease.number if lease else 1)
        assert has == (lease is not None and lease.process == process) or (lease is not None and self.is_over(lease))

    def forget(self) -> None:
        key, noted = self.key, self.choices.of(2) == 1
        result, awaited = self.table.invalidate(key, self.at, noted)
        assert result == self.is_live(key)
        self.judge.entries.pop(key, None)
        lease = self.judge.leases.pop(key, None)
        assert awaited == (lease is not None and lease.awaited) or (lease is not None and self.is_over(lease))
        if noted:
            self.judge.forgotten[key] = self.at
            self.make_room()

    def invalidate_tag(self) -> None:
        tag, most = TAGS[self.choices.of(len(TAGS))], (1, 3, 1000)[self.choices.of(3)]
        self.judge.forgotten_tags[tag] = self.at
        had_room = self.has_room()
        having = [key for key, entry in self.judge.entries.items() if tag in entry.tags]
        live = sum(map(self.is_live, having))
        count, more, process = 0, True, self.process
        while more:
            result, more = self.tables[process].invalidate_tag(tag.encode(), self.at, most)
            count += result
        # The oldest response may have been removed for the mark.
        assert count <= live if not had_room else count == live
        for key in having:
            assert self.tables[process].find(key, self.at) is None
            del self.judge.entries[key]
        self.make_room(had_room=had_room)

    def make_room(self, *, had_room: bool = True) -> None:
        if not had_room or not self.has_room():
            self.look_who_had_to_go()

    def invalidate_all(self) -> None:
        prefix = self.key[:200]
        if len(prefix) < 5:
            return
        self.table.invalidate_all(prefix)
        for key in [key for key in self.judge.entries if key.startswith(prefix)]:
            del self.judge.entries[key]

    def prune(self) -> None:
        self.table.prune(self.at)
        self.judge.entries = {key: entry for key, entry in self.judge.entries.items() if self.is_live(key)}
        assert self.table.count == len(self.judge.entries)

    def wait(self) -> None:
        self.at += (0.001, 0.06, 0.7, 5.0, 300.0)[self.choices.of(5)]

    def die(self) -> None:
        """A process is killed, and another one starts with its number."""
        if self.choices.of(4):
            return
        process = self.process
        self.tables[1 - process].release_process(process + 1)
        self.judge.leases = {key: lease for key, lease in self.judge.leases.items() if lease.process != process}
        self.tables[process] = ResponseTable(self.memory, process + 1, Entry)

    # --- overwritten memory -----------------------------------------------------------------------------------------

    def damage(self, dice: random.Random) -> None:
        for _ in range(dice.choice((1, 3, 20))):
            self.scribble(dice)
            for _ in range(dice.choice((1, 10, 40))):
                self.step_anyhow(dice)
            if dice.random() < 0.3:
                with suppress(ValueError):
                    self.tables[0] = ResponseTable(self.memory, 1, Entry)
        for table in self.tables:
            table.retire()
            assert (table.count, table.used) == (0, 0)

    def scribble(self, dice: random.Random) -> None:
        """Write anywhere behind the lock, and mostly to used memory."""
        size = len(self.memory)
        blocks = size - self.room * 256 if self.shards == 1 else HEAD
        used = min(size - blocks, 256 + self.tables[0].used)
        start = dice.choice((dice.randrange(LOCK, 200), blocks + dice.randrange(used), dice.randrange(LOCK, size)))
        text = dice.randbytes(dice.choice((1, 8, 64, 256, 5000)))
        if dice.random() < 0.6:
            # A number in place of a number: small ones are existing indices.
            start = start // 4 * 4
            number = dice.choice((0, 1, 2, 15, 16, 255, (1 << 32) - 1, dice.randrange(1 << 32), dice.randrange(1000)))
            text = number.to_bytes(4, "little")
        part = size // self.shards // HEAD * HEAD
        end = min(size, start + len(text))
        if start % part < LOCK or start // part != (end - 1) // part:
            return
        self.memory[start:end] = text[: end - start]

    def step_anyhow(self, dice: random.Random) -> None:
        self.choices = Choices(dice.randbytes(64))
        table, key = self.table, self.key
        done = dice.randrange(9)
        if done == 0:
            table.store(key, self.entry, self.at, self.at)
        elif done == 1:
            result = table.begin(key, 0.0, self.at)
            if isinstance(result, int) and result > 0:
                table.store_and_release(key, result, self.at, self.entry, self.at)
        elif done < 5:
            assert isinstance(table.find(key, self.at), Entry | None)
        elif done == 5:
            table.invalidate(key, self.at, noted=True)
        elif done == 6:
            table.invalidate_tag(dice.choice(TAGS).encode(), self.at, 100)
        elif done == 7:
            table.prune(self.at)
        else:
            table.invalidate_all(key[:1])
        self.wait()


def check(data: bytes) -> None:
    dice = random.Random(data)
    trial = Trial(Choices(data))
    trial.run()
    trial.empty()
    for number in range(3):
        trial = Trial(Choices(data[number * 400 :][:200]))
        trial.run()
        trial.damage(dice)


if __name__ == "__main__":
    chance = random.Random(0)
    main(check, [chance.randbytes(1500) for _ in range(16)], [bytes([number]) for number in range(18)])
