"""Answers in Redis: one truth for all workers of all hosts.

For each key three things that Redis keeps together (in a Cluster too: they share the part in braces):

    rowcall:{KEY}:a   the answer, with its lifetime
    rowcall:{KEY}:l   the lease: the ticket of whoever computes, for LEASE seconds unless it is renewed
    rowcall:{KEY}:w   somebody waits

A lease is taken, and an answer written, forgotten or given up, by one script each, so in one step for everybody. As in
the store of a host, forgetting deletes the lease too, and an answer whose lease is gone is not written any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import secrets
import time
from typing import Any

from rowcall.core.cache.entry import Entry, packed, unpacked
from rowcall.core.errors.problems import Problem
from rowcall.service.store.flights import (
    AGAIN,
    ALONE,
    Again,
    Alone,
    Found,
    Outcome,
    Waiters,
    problem_of,
    problem_text,
)
from rowcall.service.store.redis_link import FAILURES, GoneError, RedisLink

log = logging.getLogger("rowcall.cache")

CHANNEL = b"rowcall:answers"
LEASE = 3.0
"""Seconds after which a host that has died is taken for dead."""
RENEW = 1.0

_BEGIN = """
local answer = redis.call('GET', KEYS[1])
if answer then return {1, answer} end
local held = redis.call('GET', KEYS[2])
if held then
  redis.call('SET', KEYS[3], '1', 'PX', 60000)
  return {2, held}
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {3, ''}
"""
_LAND = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[2])
if ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2])
elseif tonumber(ARGV[3]) > 0 then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
if redis.call('DEL', KEYS[3]) == 1 then redis.call('PUBLISH', ARGV[4], ARGV[5]) end
return 1
"""
_END = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[2])
if redis.call('DEL', KEYS[3]) == 1 then redis.call('PUBLISH', ARGV[2], ARGV[3]) end
return 1
"""
_FORGET = """
local found = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
if redis.call('DEL', KEYS[3]) == 1 then redis.call('PUBLISH', ARGV[1], ARGV[2]) end
return found
"""
_RENEW = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"


def stored_name(key: bytes) -> bytes:
    """Keys hold what clients send; in Redis only their hash is seen."""
    return hashlib.sha256(key).hexdigest().encode()


def _keys(name: bytes) -> list[bytes]:
    return [b"rowcall:{%b}:%b" % (name, kind) for kind in (b"a", b"l", b"w")]


def _tag_set(tag: str) -> bytes:
    return b"rowcall:tag:" + hashlib.sha256(tag.encode()).hexdigest().encode()


class RedisTicket:
    __slots__ = ("_answers", "_began", "_name", "number")

    def __init__(self, answers: RedisAnswers, name: bytes, number: bytes) -> None:
        self._answers = answers
        self._name = name
        self.number = number
        self._began = time.monotonic()

    def keep(self, entry: Entry, seconds: float | None) -> None:
        if self._answers.is_forgotten(entry.tags, self._began):
            self._answers.end(self._name, self.number, AGAIN)
        else:
            self._answers.link.background(self._answers.land(self._name, self.number, entry, seconds))

    def pass_on(self) -> None:
        self._answers.end(self._name, self.number, ALONE)

    def give_up(self, problem: Problem | None) -> None:
        self._answers.end(self._name, self.number, AGAIN if problem is None else problem)


class RedisAnswers:
    """To be made in the running event loop, of a link that is connected."""

    def __init__(self, link: RedisLink) -> None:
        self.link = link
        self._waiters = Waiters()
        self._open: dict[bytes, tuple[bytes, float]] = {}
        """Tickets of this worker by name: number, and when it was taken."""
        self._mark = f"{os.getpid()}-{secrets.token_hex(6)}-".encode()
        self._numbers = 0
        self._marks: dict[str, float] = {}
        """When tags were forgotten last."""
        link.on_back.append(self._waiters.tell_all)
        link.background(self._renew())
        link.background(self._listen())

    # --- asking ----------------------------------------------------------------------------------------------------

    async def begin(self, key: bytes, patience: float) -> Found:
        name = stored_name(key)
        try:
            data = await self.link.get(b"rowcall:{%b}:a" % name)
            entry = None if data is None else unpacked(data)
            return entry or await self._board(name, patience)
        except GoneError:
            return ALONE

    async def _board(self, name: bytes, patience: float) -> Found:
        until = time.monotonic() + patience
        while True:
            # Listening begins before the question: the word may come before its answer has been read.
            future = self._waiters.join(name)
            try:
                self._numbers += 1
                number = self._mark + str(self._numbers).encode()
                kind, value = await self.link.run(_BEGIN, _keys(name), [number, int(LEASE * 1000)])
            except BaseException:
                self._waiters.leave(name, future)
                raise
            if kind != 2:
                self._waiters.leave(name, future)
                if kind == 1:
                    return unpacked(value) or ALONE
                self._open[name] = (number, time.monotonic())
                return RedisTicket(self, name, number)
            outcome = await self._await(name, future, until - time.monotonic() if patience > 0 else 0.0)
            if not isinstance(outcome, Again):
                return outcome

    async def _await(self, name: bytes, future: asyncio.Future[Outcome], left: float) -> Entry | Again | Alone:
        """AGAIN after as long as a lease lives: a host that has died says nothing."""
        if left <= 0 or left > LEASE:
            return await self._waiters.wait(name, future, LEASE, late=AGAIN)
        return await self._waiters.wait(name, future, left)

    # --- ending ----------------------------------------------------------------------------------------------------

    async def land(self, name: bytes, number: bytes, entry: Entry, seconds: float | None) -> bool:
        """Whether it is kept."""
        self._open.pop(name, None)
        ends = 0.0 if seconds is None else time.time() + seconds
        life: bytes | int = b"" if seconds is None else max(0, int(seconds * 1000))
        data = packed(entry._replace(written=time.time(), ends=ends))
        try:
            kept = await self.link.run(_LAND, _keys(name), [number, data, life, CHANNEL, name + b"r"])
            for tag in entry.tags:
                await self.link.ask(self.link.client.sadd, _tag_set(tag), name)
        except GoneError:
            self._waiters.tell(name, entry)
            return False
        self._waiters.tell(name, entry if kept else AGAIN)
        return bool(kept)

    def end(self, name: bytes, number: bytes, outcome: Problem | Again | Alone) -> None:
        self._open.pop(name, None)
        self.link.background(self._end(name, number, outcome))

    async def _end(self, name: bytes, number: bytes, outcome: Problem | Again | Alone) -> None:
        word = name + (b"a" if isinstance(outcome, Alone) else b"r")
        if isinstance(outcome, Problem):
            word = name + b"p" + problem_text(outcome)
        with contextlib.suppress(GoneError):
            if not await self.link.run(_END, _keys(name), [number, CHANNEL, word]):
                outcome = AGAIN
        self._waiters.tell(name, outcome)

    async def forget(self, key: bytes) -> bool:
        name = stored_name(key)
        try:
            return bool(await self.link.run(_FORGET, _keys(name), [CHANNEL, name + b"r"]))
        except GoneError:
            log.error("an answer could not be forgotten, as Redis is gone; it may be given again when it is back")
            return False

    def is_forgotten(self, tags: tuple[str, ...], since: float) -> bool:
        return any(self._marks.get(tag, 0.0) >= since for tag in tags)

    async def forget_tag(self, tag: str) -> int:
        return len(await self.forget_names(tag))

    async def forget_names(self, tag: str) -> list[bytes]:
        """The answers that had it, by their names."""
        self._marks[tag] = time.monotonic()
        link = self.link
        gone: list[bytes] = []
        try:
            await link.ask(link.client.publish, CHANNEL, b"-" * 64 + b"t" + tag.encode())
            for name in await link.ask(link.client.smembers, _tag_set(tag)):
                if await link.run(_FORGET, _keys(name), [CHANNEL, name + b"r"]):
                    gone.append(name)
                await link.ask(link.client.srem, _tag_set(tag), name)
        except GoneError:
            log.error("the tag %s could not be forgotten, as Redis is gone", tag)
        return gone

    def close(self) -> None:
        """The link is closed by whoever made it."""

    # --- in the background -----------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW)
            before = time.monotonic() - RENEW
            for name, (number, began) in tuple(self._open.items()):
                if began < before:
                    with contextlib.suppress(GoneError):
                        await self.link.run(_RENEW, [_keys(name)[1]], [number, int(LEASE * 1000)])

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear_all()
            except FAILURES as error:
                log.debug("not listening to Redis: %s", error)
            await asyncio.sleep(RENEW)

    async def _hear_all(self) -> None:
        async with self.link.client.pubsub() as channel:
            await channel.subscribe(CHANNEL)
            # What was said while nobody listened is lost.
            self._waiters.tell_all()
            async for message in channel.listen():
                if message["type"] == "message":
                    self._hear(message["data"])

    def _hear(self, data: Any) -> None:
        name, kind, rest = data[:64], data[64:65], data[65:]
        outcome: Outcome = AGAIN
        if kind == b"t":
            self._marks[rest.decode()] = time.monotonic()
            return
        if kind == b"p":
            outcome = problem_of(rest)
        elif kind == b"a":
            outcome = ALONE
        self._waiters.tell(name, outcome)
