"""The limit of open files of a process, and the share of it for client connections.

Without a free descriptor no connection can be accepted (and a server that retries at once does nothing else), no pipe
can be created for a stream, and no session opened. So client connections get the descriptors that nothing else needs.
"""

from __future__ import annotations

import contextlib
import resource

MOST = 1_048_576
"""Limit of open files that is assumed if the system has none."""
LEAST_CONNECTIONS = 8
"""Minimum number of client connections of a listener, so that a worker can always serve requests."""
FILES = 256
"""Reserve of descriptors of a worker for uses that are not counted: libraries, logs, files, outgoing requests."""
STREAM = 4
"""Descriptors of a streamed response besides its connection: both ends of a pipe, the end that granian opens, and one
reserve for that."""


def raise_limit() -> None:
    """Raise the limit of open files to the hard limit, or to `MOST` if that is unlimited, for this process and its
    children, if the system allows it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = MOST if hard == resource.RLIM_INFINITY else hard
    with contextlib.suppress(ValueError, OSError):  # macOS has another limit besides this one
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def limit() -> int:
    """Return the limit of open files of this process, at most `MOST`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(soft, MOST)


def room_for_connections(descriptors: int, sessions: int, streams: int, listeners: int) -> int:
    """Return how many connections each listener of a worker may have open at the same time: at least
    `LEAST_CONNECTIONS`, even if the limit has no room for them.

    descriptors: limit of open files. sessions: number of sessions of all databases. streams: maximum number of
    responses that are streamed at the same time. listeners: number of listeners of the worker.
    """
    files = min(FILES, descriptors // 4)
    available = descriptors - files - sessions - STREAM * streams
    return max(LEAST_CONNECTIONS, available // max(1, listeners))
