"""How many files and sockets a process may have open, and how many of them connections of clients may take.

Without a descriptor nothing works: no connection can be accepted (and whoever tries again at once does nothing else),
no pipe can be made for a stream, no session opened. So clients get what is left when everything else has its own.
"""

from __future__ import annotations

import contextlib
import resource

MOST = 1_048_576
"""Where the system sets no limit."""
LEAST_CONNECTIONS = 8
"""A worker that takes none serves nobody."""
FILES = 256
"""Descriptors of a worker for what is counted nowhere: libraries, logs, files, calls of other services."""
STREAM = 4
"""Descriptors of a streamed answer besides its connection: both ends of a pipe, the end that granian opens, and one
kept free for that."""


def raise_limit() -> None:
    """To what the system allows this process, and with it those that it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else hard
    with contextlib.suppress(ValueError, OSError):  # macOS has another limit beside this one
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(soft, MOST)


def room_for_connections(descriptors: int, sessions: int, streams: int, listeners: int) -> int:
    """How many connections each of the listeners of a worker may have open at the same time.

    sessions: of all databases. streams: answers that can be streamed at the same time.
    """
    files = min(FILES, descriptors // 4)
    left = descriptors - files - sessions - STREAM * streams
    return max(LEAST_CONNECTIONS, left // max(1, listeners))
