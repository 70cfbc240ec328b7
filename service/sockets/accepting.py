"""Makes a worker stop to accept connections while it goes on with those that it has.

granian knows one signal only, which closes idle connections too. Whoever hands its sockets to another process has to do
these two apart: a connection that has been accepted, and whose first request is still on its way, would be reset. So
the listening socket is taken out of the set of sockets that granian's runtime is woken for; nothing else refers to it.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
from collections.abc import Iterable, Iterator

from rowcall.service.sockets.listeners import Listener

POSSIBLE = sys.platform == "linux"

_ENTRY = re.compile(r"^tfd:\s*(\d+)\s.*\bino:([0-9a-f]+)\b", re.MULTILINE)
"""Of an epoll instance in /proc/PID/fdinfo: the descriptor, and the inode of its file in hexadecimal."""


def stop_accepting(listeners: Iterable[Listener]) -> None:
    """What waits in the queue of a listening socket stays there, for the others that have it."""
    inodes = {os.fstat(listener.fd).st_ino for listener in listeners}
    for instance in _epoll_instances():
        with open(f"/proc/self/fdinfo/{instance}", encoding="ascii") as file:
            entries = _ENTRY.findall(file.read())
        watched = [int(descriptor) for descriptor, inode in entries if int(inode, 16) in inodes]
        if watched:
            with contextlib.closing(select.epoll.fromfd(os.dup(instance))) as epoll:
                for descriptor in watched:
                    with contextlib.suppress(OSError):
                        epoll.unregister(descriptor)


def _epoll_instances() -> Iterator[int]:
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:[eventpoll]":
                yield int(name)
