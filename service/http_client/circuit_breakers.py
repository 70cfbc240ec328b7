"""Circuit breakers: to a server that keeps failing, no worker of the host sends requests for a time.

The shared state has a record for each failing server: consecutive failures, and the time until which it gets no
requests. After that time, requests are sent again; one more failure opens the circuit again, one success deletes the
record.
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
from rowcall.service.shared_state.environment import Environment, Transaction, bytes_in_use, items_between

FAILING = frozenset({502, 503, 504})
"""Statuses which mean that the server does not answer."""
SIZE = 1_048_576
FULL = 0.6
"""Fraction of the environment from which old records are deleted."""
LOOKED_AT = 200
"""Records to check for deletion, for each new one."""
_FIRST, _END = b"c", b"d"

_RECORD = struct.Struct("<Id")


class CircuitOpenError(OutboundError):
    """The server has failed too often and gets no requests now. retry_after: seconds."""

    def __init__(self, authority: str, retry_after: int) -> None:
        super().__init__(f"{authority} keeps failing; it gets no requests for another {retry_after} s", unanswered=True)
        self.retry_after = retry_after


class CircuitBreakers:
    """The circuit breakers of a host. failures: consecutive failures that open a circuit. seconds: for how long."""

    def __init__(self, environment: Environment, failures: int, seconds: float) -> None:
        self._environment = environment
        self._failures = failures
        self._seconds = seconds
        self._last_examined = _FIRST
        """Key at which the next check for deletable records begins."""

    def check(self, origin: Origin) -> None:
        """Raise `CircuitOpenError` if the circuit of the server is open."""
        remaining = self._seconds_until_closed(origin)
        if remaining > 0:
            raise CircuitOpenError(origin.authority, math.ceil(remaining))

    def is_open(self, origin: Origin) -> bool:
        return self._seconds_until_closed(origin) > 0

    def _seconds_until_closed(self, origin: Origin) -> float:
        """Return the seconds until the circuit closes; 0 or less if it is closed."""
        data = self._environment.get(_key(origin))
        return 0.0 if data is None else float(_RECORD.unpack(data)[1]) - time.monotonic()

    def record_success(self, origin: Origin) -> None:
        """Delete the record of failures, if there is one."""
        key = _key(origin)
        if self._environment.get(key) is not None:
            with contextlib.suppress(lmdb.MapFullError), self._environment.write() as transaction:
                transaction.delete(key)

    def record_failure(self, origin: Origin) -> None:
        """Count a failure; enough consecutive ones open the circuit of the server. Hosts may come from values of
        requests: if there are more than the environment has room for, some are not counted.
        """
        key = _key(origin)
        with contextlib.suppress(lmdb.MapFullError), self._environment.write() as transaction:
            data = transaction.get(key)
            if data is None and bytes_in_use(transaction) > self._environment.size * FULL:
                self._delete_closed(transaction)
            count = 1 + (0 if data is None else _RECORD.unpack(data)[0])
            until = time.monotonic() + self._seconds if count >= self._failures else 0.0
            transaction.put(key, _RECORD.pack(min(count, self._failures), until))

    def _delete_closed(self, transaction: Transaction) -> None:
        """Delete the records of servers whose circuit is closed, among the next `LOOKED_AT` ones."""
        now = time.monotonic()
        records = list(itertools.islice(items_between(transaction, self._last_examined, _END), LOOKED_AT))
        self._last_examined = records[-1][0] if len(records) == LOOKED_AT else _FIRST
        for key, data in records:
            if _RECORD.unpack(data)[1] <= now:
                transaction.delete(key)


def _key(origin: Origin) -> bytes:
    return f"c{origin.scheme}://{origin.authority}".encode()[:500]
