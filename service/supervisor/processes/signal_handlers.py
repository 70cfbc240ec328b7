"""Signal handlers of an event loop that can be replaced by ignoring the signals, without a moment between.

asyncio's own handlers are removed when the loop closes: a signal that arrives then has its default action, and the
process ends with the signal instead of its exit code.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Mapping
from functools import partial


class SignalHandlers:
    """The signal handlers of one event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, handlers: Mapping[signal.Signals, Callable[[], object]]
    ) -> None:
        """Handle signals from now on: each calls its handler in the loop. Must be created in the main thread."""
        self._loop = loop
        # A signal may be delivered to any thread: a byte in this socket wakes the loop.
        self._receiver, self._sender = socket.socketpair()
        for end in (self._receiver, self._sender):
            end.setblocking(False)
        loop.add_reader(self._receiver, self._drain)
        signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        self._before = {
            number: signal.signal(number, partial(self._schedule, handle)) for number, handle in handlers.items()
        }

    def _schedule(self, handle: Callable[[], object], _number: int, _frame: object) -> None:
        """Call the handler in the loop, unless that is closed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(handle)

    def _drain(self) -> None:
        """Drop the bytes that have woken the loop."""
        try:
            while self._receiver.recv(4096):
                pass
        except BlockingIOError:
            pass

    def restore(self) -> None:
        """Set the former handlers again."""
        self._end(self._before)

    def ignore(self) -> None:
        """Ignore the signals from now on: the process is about to end with its exit code."""
        self._end(dict.fromkeys(self._before, signal.SIG_IGN))

    def _end(self, handlers: Mapping[signal.Signals, object]) -> None:
        """Set these handlers, and release the sockets that wake the loop."""
        for number, handler in handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # `signal.signal` has returned it
        signal.set_wakeup_fd(-1)
        self._loop.remove_reader(self._receiver)
        self._receiver.close()
        self._sender.close()
