"""A file system without locks, such as NFS without a lock daemon."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os

import pytest


def refuse_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `flock` fail with ENOLCK. The third attempt fails the test, as it shows a loop without end."""
    attempts = itertools.count(1)

    def flock(_file: object, _operation: int) -> None:
        assert next(attempts) < 3, "a lock that is refused is tried again and again"
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
