"""Permits that are counted in the shared state of the host: exact over all its workers.

An environment holds them. The first letter of a key is the kind:

    w POLICY CALLER   a window or a bucket (`core.limits.counting`)
    c POLICY CALLER   who holds permits of a concurrency limit, and who waits for one, in order of arrival

Windows and buckets need no wake-up. A released concurrency permit goes to the oldest or the latest waiting request, as
the policy says, in whatever worker, in the same transaction. When a worker exits, all its permits are released.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import logging
import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TypeVar

import lmdb

from rowcall.core.limits.counting import NOW, Decision, Turn, decide, give_back, is_idle
from rowcall.core.limits.policy import Policy
from rowcall.service.shared_state.environment import LONGEST_KEY, Environment, Transaction, bytes_in_use, items_between
from rowcall.service.shared_state.message_bus import WORKER_GONE, MessageBus

log = logging.getLogger("rowcall.limits")

Changed = TypeVar("Changed")
Otherwise = TypeVar("Otherwise")

SIZE = 67_108_864
"""Bytes: about half a million simultaneous callers."""
NAMES = 4096
"""Callers whose keys a worker caches."""
FULL = 0.8
"""Share of the size above which counters are deleted although they are in use."""
SWEPT_AT_ONCE = 500
"""Most counters that one transaction examines."""
SWEEP_SECONDS = 30.0
"""Seconds between two sweeps."""
TOPIC = "permits"
"""Topic of the message bus for results of waiting requests."""

_WINDOW, _AFTER_WINDOW = b"w", b"x"
_GATE, _AFTER_GATE = b"c", b"d"
_COUNTS = struct.Struct("<HH")
_HOLDER = struct.Struct("<II")
_WAITER = struct.Struct("<QI")
_WORD = struct.Struct("<IQ?")


def _name(kind: bytes, policy: str, caller: str) -> bytes:
    """Return the key of a counter. Long names are replaced by digests. kind: first letter of the key; empty: the key
    begins with the policy.
    """
    policy_bytes = policy.encode()
    caller_bytes = caller.encode(errors="surrogateescape")
    if len(policy_bytes) > 100:
        policy_bytes = hashlib.sha256(policy_bytes).digest()
    if len(policy_bytes) + len(caller_bytes) > LONGEST_KEY - 8:
        caller_bytes = b"#" + hashlib.sha256(caller_bytes).digest()
    return kind + len(policy_bytes).to_bytes(1, "big") + policy_bytes + caller_bytes


class _Gate:
    """A concurrency limit for one caller: its holders by process, and its waiting requests. A copy of the record in the
    environment.
    """

    __slots__ = ("holders", "waiters")

    def __init__(self, data: bytes | None) -> None:
        """data: the record, as `pack` returns it; None: there is none."""
        self.holders: dict[int, int] = {}
        """Number of permits by process id."""
        self.waiters: list[tuple[int, int]] = []
        """Number and process id of each waiting request, in the order of their arrival."""
        if data is not None:
            holders, waiters = _COUNTS.unpack_from(data)
            middle = _COUNTS.size + holders * _HOLDER.size
            self.holders = dict(_HOLDER.iter_unpack(data[_COUNTS.size : middle]))
            self.waiters = list(_WAITER.iter_unpack(data[middle : middle + waiters * _WAITER.size]))

    def pack(self) -> bytes:
        parts = [_COUNTS.pack(len(self.holders), len(self.waiters))]
        parts += [_HOLDER.pack(*holder) for holder in self.holders.items()]
        parts += [_WAITER.pack(*waiter) for waiter in self.waiters]
        return b"".join(parts)

    @property
    def held(self) -> int:
        return sum(self.holders.values())

    def give(self, process: int) -> None:
        """Add a permit that the process holds."""
        self.holders[process] = self.holders.get(process, 0) + 1

    def take_back(self, process: int) -> None:
        """Remove a permit that the process holds."""
        remaining = self.holders.get(process, 0) - 1
        if remaining > 0:
            self.holders[process] = remaining
        else:
            self.holders.pop(process, None)


class HostPermits:
    """The permits of one worker. To be created in the running event loop. In all methods, `caller` is the name under
    which the caller of a request is counted.
    """

    def __init__(self, environment: Environment, message_bus: MessageBus, policies: tuple[Policy, ...]) -> None:
        self._environment = environment
        self._message_bus = message_bus
        self._policies = {_name(b"", policy.name, ""): policy for policy in policies}
        self._process = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self._warned = False
        self._swept = _WINDOW
        self._window_name = lru_cache(maxsize=NAMES)(partial(_name, _WINDOW))
        self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        self._ends = (
            message_bus.subscribe(TOPIC, self._hear),
            message_bus.subscribe(WORKER_GONE, lambda message: self._release_process(int(message))),
        )

    def close(self) -> None:
        self._sweeping.cancel()
        for end in self._ends:
            end()

    # --- windows and buckets ---------------------------------------------------------------------------------------

    def request_permit(self, policy: Policy, caller: str) -> Decision:
        """Request a permit of a window or bucket; return whether the request is admitted, refused or has to wait.

        If there is no room for a counter, the request is admitted.
        """
        name = self._window_name(policy.name, caller)
        try:
            with self._environment.write() as transaction:
                decision, state = decide(policy, transaction.get(name), time.monotonic())
                if state is not None:
                    transaction.put(name, state)
        except lmdb.MapFullError:
            self._make_room()
            return NOW
        return decision

    def put_back(self, policy: Policy, caller: str, turn: Turn) -> None:
        """Put back the permit of a window or bucket that a request has waited for and does not use. turn: of the
        decision of `request_permit`."""
        name = self._window_name(policy.name, caller)
        with contextlib.suppress(lmdb.MapFullError), self._environment.write() as transaction:
            state = give_back(policy, transaction.get(name), turn, time.monotonic())
            if state is not None:
                transaction.put(name, state)

    def _make_room(self) -> None:
        """Delete counters of some callers, because there are more callers than there is room for."""
        if not self._warned:
            self._warned = True
            log.warning(
                "rate limits: the shared state of the host has no room for further callers, so the counters of some "
                "callers begin again; use a policy that distinguishes fewer callers"
            )
        self._environment.forget_readers()
        self._sweep_some(force=True)

    def _sweep(self) -> None:
        """Examine some counters, delete those of callers against whom nothing counts any more, and schedule the next
        sweep. If the environment is fuller than `FULL`, counters in use are deleted too (`_sweep_some`)."""
        more = False
        try:
            more = self._sweep_some(force=False)
        finally:
            self._sweeping = self._loop.call_later(0.05 if more else SWEEP_SECONDS, self._sweep)

    def _sweep_some(self, *, force: bool) -> bool:
        """Examine some counters, and delete those that are idle; with `force`, or if the environment is fuller than
        `FULL`, delete all of them. Return whether there are more.

        Only some at a time, because the event loop is blocked meanwhile. Deleting needs free pages too: if there are
        too few, it is tried with fewer counters.
        """
        for most in (SWEPT_AT_ONCE, SWEPT_AT_ONCE // 10, 1):
            with contextlib.suppress(lmdb.MapFullError):
                return self._sweep_next(most, force=force)
        return False

    def _sweep_next(self, most: int, *, force: bool) -> bool:
        """Examine the next `most` counters, and delete those that are idle or of unknown policies; with `force`, or if
        the environment is fuller than `FULL`, delete all of them. Return whether there are more. Raises
        `lmdb.MapFullError`."""
        now = time.monotonic()
        with self._environment.write() as transaction:
            force = force or bytes_in_use(transaction) > self._environment.size * FULL
            entries = list(itertools.islice(items_between(transaction, self._swept, _AFTER_WINDOW), most))
            for key, state in entries:
                policy = self._policies.get(key[1 : 2 + key[1]])
                if force or policy is None or is_idle(policy, state, now):
                    transaction.delete(key)
        more = len(entries) == most
        self._swept = entries[-1][0] + b"\0" if more else _WINDOW
        return more

    # --- concurrency -----------------------------------------------------------------------------------------------

    def request_concurrency_permit(self, policy: Policy, caller: str) -> bool | int:
        """Request a concurrency permit. True: it is held, or not counted because there is no room for it. False:
        refused. A number: `wait` for it."""
        return self._with_room(partial(self._enter, policy, caller), otherwise=True)

    def _with_room(self, change: Callable[[], Changed], *, otherwise: Otherwise) -> Changed | Otherwise:
        """Apply a change; if the environment is full, make room and retry; if it is still full, return `otherwise`.

        No request fails because the environment is full: a permit that cannot be recorded is not counted.
        """
        try:
            return change()
        except lmdb.MapFullError:
            self._make_room()
        try:
            return change()
        except lmdb.MapFullError:
            return otherwise

    def _enter(self, policy: Policy, caller: str) -> bool | int:
        name = _name(_GATE, policy.name, caller)
        dropped: tuple[int, int] | None = None
        with self._environment.write() as transaction:
            gate = _Gate(transaction.get(name))
            if gate.held < policy.permits:
                gate.give(self._process)
                transaction.put(name, gate.pack())
                return True
            if len(gate.waiters) >= policy.queue:
                if policy.oldest_first or not policy.queue:
                    return False
                # The latest request is served first, so the oldest one loses its place in the queue.
                dropped = gate.waiters.pop(0)
            number = next(self._numbers)
            gate.waiters.append((number, self._process))
            transaction.put(name, gate.pack())
        self._waiting[number] = self._loop.create_future()
        if dropped is not None:
            self._deliver(dropped, allowed=False)
        return number

    async def wait(self, number: int) -> bool:
        """Wait for a permit; return whether it is held. If waiting is cancelled, call `end_wait`."""
        allowed = await asyncio.shield(self._waiting[number])
        del self._waiting[number]
        return allowed

    def end_wait(self, policy: Policy, caller: str, number: int) -> None:
        """End waiting, because the client has disconnected. If the permit was granted meanwhile, release it. number: of
        `request_concurrency_permit`, for which `wait` has not returned.
        """
        if self._with_room(partial(self._end_waiting, policy, caller, number), otherwise=False):
            del self._waiting[number]
            return

        def settle(granted: asyncio.Future[bool]) -> None:
            del self._waiting[number]
            if granted.result():
                self.release(policy, caller)

        # Another worker may have granted or refused it, whose message has not arrived yet.
        self._waiting[number].add_done_callback(settle)

    def _end_waiting(self, policy: Policy, caller: str, number: int) -> bool:
        """Remove a waiting request from the queue; return whether it was there."""
        name = _name(_GATE, policy.name, caller)
        with self._environment.write() as transaction:
            gate = _Gate(transaction.get(name))
            waiter = (number, self._process)
            waited = waiter in gate.waiters
            if waited:
                gate.waiters.remove(waiter)
                transaction.put(name, gate.pack())
        return waited

    def release(self, policy: Policy, caller: str) -> None:
        """Release a permit, which goes to the next waiting request."""
        self._notify_waiters(self._with_room(partial(self._release, policy, caller), otherwise=()))

    def _release(self, policy: Policy, caller: str) -> Sequence[tuple[int, int]]:
        """Release a permit of a concurrency policy that this process holds, and grant it to the next waiting requests;
        return these requests.
        """
        name = _name(_GATE, policy.name, caller)
        with self._environment.write() as transaction:
            gate = _Gate(transaction.get(name))
            gate.take_back(self._process)
            served = list(_grant(gate, policy))
            _store(transaction, name, gate)
        return served

    def _notify_waiters(self, waiters: Sequence[tuple[int, int]]) -> None:
        """Report to waiting requests that they hold a permit. waiters: for each request, the number of its wait and its
        process id."""
        for waiter in waiters:
            self._deliver(waiter, allowed=True)

    def _deliver(self, waiter: tuple[int, int], *, allowed: bool) -> None:
        """Report the result to a waiting request, in this process or by the message bus. waiter: number of the wait,
        and process. allowed: the request holds the permit.
        """
        number, process = waiter
        if process == self._process:
            self._answer(number, allowed)
        else:
            self._message_bus.publish(TOPIC, _WORD.pack(process, number, allowed))

    def _hear(self, message: bytes) -> None:
        """Handle a message of the message bus: the result for a waiting request. Messages for other processes are
        ignored."""
        process, number, allowed = _WORD.unpack(message)
        if process == self._process:
            self._answer(number, allowed)

    def _answer(self, number: int, allowed: bool) -> None:
        """Report the result to a waiting request of this process. number: of the wait. allowed: the request holds the
        permit.
        """
        future = self._waiting.get(number)
        if future is not None and not future.done():
            future.set_result(allowed)

    def _release_process(self, process: int) -> None:
        """Release all permits of a worker that has exited."""
        self._notify_waiters(self._with_room(partial(self._take_all_back, process), otherwise=()))

    def _take_all_back(self, process: int) -> Sequence[tuple[int, int]]:
        """Release all permits of a worker that has exited, and end its waits. Return the waiting requests that got
        permits.
        """
        served: list[tuple[int, int]] = []
        with self._environment.write() as transaction:
            for name, data in list(items_between(transaction, _GATE, _AFTER_GATE)):
                gate = _Gate(data)
                gate.holders.pop(process, None)
                gate.waiters = [waiter for waiter in gate.waiters if waiter[1] != process]
                policy = self._policies.get(name[1 : 2 + name[1]])
                if policy is not None:
                    served += _grant(gate, policy)
                _store(transaction, name, gate)
        return served


def _grant(gate: _Gate, policy: Policy) -> Iterator[tuple[int, int]]:
    """Grant free permits to waiting requests, in the order of the policy; yield these requests."""
    while gate.waiters and gate.held < policy.permits:
        waiter = gate.waiters.pop(0 if policy.oldest_first else -1)
        gate.give(waiter[1])
        yield waiter


def _store(transaction: Transaction, name: bytes, gate: _Gate) -> None:
    """Store a concurrency limit, or delete it if it is unused."""
    if gate.holders or gate.waiters:
        transaction.put(name, gate.pack())
    else:
        transaction.delete(name)
