"""Make a worker stop accepting connections while it continues to serve the open ones.

granian has only one signal, which also closes idle connections. A process that hands over its sockets must separate
these steps: otherwise a connection that was accepted and whose first request is still in transit would be reset.
Therefore the listening socket is removed from the epoll set of granian's runtime; nothing else refers to it.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
from collections.abc import Iterable, Iterator

from rowcall.service.sockets.listeners import Listener

_ENTRY = re.compile(r"^tfd:\s*(\d+)\s.*\bino:([0-9a-f]+)\b", re.MULTILINE)
"""An entry of an epoll instance in /proc/PID/fdinfo: the descriptor, and the inode of its file in hexadecimal."""


def stop_accepting(listeners: Iterable[Listener]) -> None:
    """Remove the listening sockets from all epoll instances of this process. Raises `OSError` if no descriptor is free,
    and on other systems than Linux.

    Connections in the queue of a listening socket stay there for the other processes that have the socket open.
    """
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
    """Yield the descriptors of the epoll instances of this process."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:[eventpoll]":
                yield int(name)
