"""Notifications to systemd about this process (sd_notify(3)); none if it does not ask for them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Mapping


def environment_of_successor(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that takes over: without `WATCHDOG_PID`, which names this process, so that
    the successor sends keep-alive messages."""
    return {name: value for name, value in environment.items() if name != "WATCHDOG_PID"}


class ServiceManager:
    """Sends notifications to systemd. environment: that of the process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        microseconds = environment.get("WATCHDOG_USEC", "") if watched and self._address else ""
        self.between = int(microseconds) / 2e6 if microseconds.isdecimal() else 0.0
        """Seconds between two keep-alive messages; 0: they are not expected."""

    def report_ready(self, status: str) -> None:
        """Report readiness, with the process id: this may be the successor of the process that was started. status:
        text for `systemctl status`.
        """
        self._notify("READY=1", f"MAINPID={os.getpid()}", f"STATUS={status}")

    def report_reloading(self) -> None:
        """Report that the schema is being read again."""
        self._notify("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def report_stopping(self, status: str) -> None:
        """Report the beginning of a shutdown. status: as for `report_ready`."""
        self._notify("STOPPING=1", f"STATUS={status}")

    def status(self, status: str) -> None:
        """Report a text for `systemctl status`."""
        self._notify(f"STATUS={status}")

    def fall_silent(self) -> None:
        """Send no further notifications: another process is the main one now. With another `MAINPID`, systemd would
        take the end of this process for that of the service."""
        self._address = ""

    async def keep_alive(self) -> None:
        """Send keep-alive messages without end: systemd restarts a process whose event loop is blocked. Call it only if
        `between` is greater than 0."""
        while True:
            self._notify("WATCHDOG=1")
            await asyncio.sleep(self.between)

    def _notify(self, *lines: str) -> None:
        """Send these lines as one message, if systemd expects messages. Errors are ignored."""
        if not self._address:
            return
        # An address that begins with @ is abstract, without a file.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as item:
            item.sendto("\n".join(lines).encode(), address)
