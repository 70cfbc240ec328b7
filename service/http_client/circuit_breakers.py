"""Circuit breakers: a server that keeps failing is left alone for a while, by all workers of the host.

A record for each host in the store: failures in a row, and until when it is not asked. When that time is over requests
go out again; one more failure is enough to stop them, one success clears the record.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import struct
import time

import lmdb

from rowcall.core.outgoing.address import Origin
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.shared_state.environment import Environment, Transaction, between, used

FAILING = frozenset({502, 503, 504})
"""Statuses that say that nobody is there to answer."""
SIZE = 1_048_576
FULL = 0.6
"""Part of the store from which on records are given up."""
LOOKED_AT = 200
"""Records, for each new one."""
_FIRST, _END = b"c", b"d"

_RECORD = struct.Struct("<Id")


class CircuitOpenError(OutboundError):
    """The server has failed too often and is not asked for now. retry_after: seconds."""

    def __init__(self, authority: str, retry_after: int) -> None:
        super().__init__(f"{authority} keeps failing and is not asked for another {retry_after} s", unanswered=True)
        self.retry_after = retry_after


class CircuitBreakers:
    """failures: in a row, from which on a server is left alone. seconds: for which it is."""

    def __init__(self, environment: Environment, failures: int, seconds: float) -> None:
        self._environment = environment
        self._failures = failures
        self._seconds = seconds
        self._looked = _FIRST
        """Where the next look for records to give up begins."""

    def check(self, origin: Origin) -> None:
        """Raises `OpenCircuitError`."""
        left = self._left(origin)
        if left > 0:
            raise CircuitOpenError(origin.authority, math.ceil(left))

    def is_open(self, origin: Origin) -> bool:
        return self._left(origin) > 0

    def _left(self, origin: Origin) -> float:
        """Seconds."""
        data = self._environment.get(_key(origin))
        return 0.0 if data is None else float(_RECORD.unpack(data)[1]) - time.monotonic()

    def succeeded(self, origin: Origin) -> None:
        key = _key(origin)
        if self._environment.get(key) is not None:
            with contextlib.suppress(lmdb.MapFullError), self._environment.write() as transaction:
                transaction.delete(key)

    def failed(self, origin: Origin) -> None:
        """Hosts may come from values of requests: of more than there is room for, some are not counted."""
        key = _key(origin)
        with contextlib.suppress(lmdb.MapFullError), self._environment.write() as transaction:
            data = transaction.get(key)
            if data is None and used(transaction) > self._environment.size * FULL:
                self._give_up_some(transaction)
            count = 1 + (0 if data is None else _RECORD.unpack(data)[0])
            until = time.monotonic() + self._seconds if count >= self._failures else 0.0
            transaction.put(key, _RECORD.pack(min(count, self._failures), until))

    def _give_up_some(self, transaction: Transaction) -> None:
        """Of servers that may be asked now."""
        now = time.monotonic()
        values = list(itertools.islice(between(transaction, self._looked, _END), LOOKED_AT))
        self._looked = values[-1][0] if len(values) == LOOKED_AT else _FIRST
        for key, data in values:
            if _RECORD.unpack(data)[1] <= now:
                transaction.delete(key)


def _key(origin: Origin) -> bytes:
    return f"c{origin.scheme}://{origin.authority}".encode()[:500]
