"""Messages between the processes of one host: publishing wakes all listeners, without polling.

    bus.subscribe("cache", take, missed)
    bus.publish("cache", b"...")

Messages are in the shared state in one order, the same for all processes; the wake-up pipe of a listener only signals
that there are more. A listener receives every message from its subscription on, including those of its own process,
once and in order. Only the latest messages are retained: a listener that falls further behind is notified that it has
missed some, and has to check for itself.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from rowcall.service.shared_state.environment import Environment, Transaction, bytes_in_use, items_between, last_before
from rowcall.service.shared_state.wakeup_pipe import Notifier, WakeupPipe

log = logging.getLogger("rowcall")

WORKER_GONE = "worker-gone"
"""Topic on which the supervisor reports the exit of a worker. The message is its process id in decimal digits."""

RETAINED_MESSAGES = 8192
"""Number of retained messages."""
SIZE = 67_108_864
"""Bytes of all messages together."""
LONGEST = 8_388_608
"""Maximum length of one message in bytes."""

Take = Callable[[bytes], None]
"""Receives the payload of a message."""
Missed = Callable[[], None]
"""Called when messages of any topic are lost for this process."""

_MESSAGE, _AFTER = b"m", b"n"
_PIPE, _AFTER_PIPE = b"b", b"c"


def _key(number: int) -> bytes:
    """Return the key of the message with this number. Keys sort in the order of the numbers."""
    return _MESSAGE + number.to_bytes(8, "big")


class MessageBus:
    """The message bus as one process uses it. folder: of the shared state."""

    def __init__(self, folder: Path) -> None:
        self._environment = Environment(folder / "bus", SIZE)
        self._pipe_folder = folder / "bells"
        self._pipe_folder.mkdir(mode=0o700, exist_ok=True)
        self._notifier = Notifier(self._pipe_folder)
        self._takers: dict[bytes, list[tuple[Take, Missed | None]]] = {}
        self._wakeup_pipe: WakeupPipe | None = None
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._next = 0
        """Number of the first message that this process has not read."""

    def subscribe(self, topic: str, take: Take, missed: Missed | None = None) -> Callable[[], None]:
        """Call `take` in the event loop for every message of the topic that is published from now on. Return a function
        that ends the subscription.

        missed: called when messages are lost for this process.
        """
        self._listen()
        entry = (take, missed)
        takers = self._takers.setdefault(topic.encode(), [])
        takers.append(entry)

        def end() -> None:
            if entry in takers:
                takers.remove(entry)

        return end

    def publish(self, topic: str, payload: bytes) -> None:
        """Send a message to all listeners of the host. Returns at once.

        Raises:
            ValueError: the message is too long.
        """
        if len(payload) > LONGEST:
            raise ValueError(f"a message of {len(payload)} bytes is too long")
        name = topic.encode()
        with self._environment.write() as transaction:
            last = last_before(transaction, _AFTER, _MESSAGE)
            number = int.from_bytes(last[1:], "big") + 1 if last else 1
            transaction.put(_key(number), len(name).to_bytes(1, "big") + name + payload)
            _trim(transaction, number)
            pipes = [key[1:].decode() for key, _ in items_between(transaction, _PIPE, _AFTER_PIPE)]
        unread_pipes = self._notifier.ring(pipes)
        if unread_pipes:
            with self._environment.write() as transaction:
                for pipe in unread_pipes:
                    transaction.delete(_PIPE + pipe.encode())

    def close(self) -> None:
        if self._wakeup_pipe is not None:
            with self._environment.write() as transaction:
                transaction.delete(_PIPE + self._name.encode())
            self._wakeup_pipe.close()
            self._wakeup_pipe = None
        self._notifier.close()
        self._environment.close()

    # --- listening -------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Create and register the wake-up pipe of this process, if it has none yet: from now on, the process receives
        published messages."""
        if self._wakeup_pipe is not None:
            return
        self._wakeup_pipe = WakeupPipe(self._pipe_folder / self._name, self._read)
        with self._environment.write() as transaction:
            transaction.put(_PIPE + self._name.encode(), b"")
            last = last_before(transaction, _AFTER, _MESSAGE)
            self._next = int.from_bytes(last[1:], "big") + 1 if last else 1

    def _read(self) -> None:
        """Pass new messages to the subscribers."""
        with self._environment.begin() as transaction:
            values = list(items_between(transaction, _key(self._next), _AFTER))
        if not values:
            return
        if int.from_bytes(values[0][0][1:], "big") > self._next:
            self._report_missed()
        self._next = int.from_bytes(values[-1][0][1:], "big") + 1
        for _, message in values:
            length = message[0]
            for take, _missed in tuple(self._takers.get(message[1 : 1 + length], ())):
                try:
                    take(message[1 + length :])
                except Exception:
                    # The other messages were read with this one, and will not be read again.
                    log.exception("a listener of the message bus failed")

    def _report_missed(self) -> None:
        """Call the functions `missed` of all subscribers."""
        for takers in tuple(self._takers.values()):
            for _take, missed in tuple(takers):
                if missed is not None:
                    missed()


def _trim(transaction: Transaction, number: int) -> None:
    """Remove the oldest messages beyond the limits, but never the one just published. number: of that one."""
    while True:
        oldest = next(items_between(transaction, _MESSAGE, _AFTER))[0]
        first = int.from_bytes(oldest[1:], "big")
        if first == number or (number - first < RETAINED_MESSAGES and bytes_in_use(transaction) <= SIZE):
            return
        transaction.delete(oldest)
