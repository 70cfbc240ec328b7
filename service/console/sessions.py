"""Sign-in of operators: links for one use, and sessions, in the memory of the supervisor.

Only digests are stored, and all of them are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable

_BYTES = 32
_MOST = 100
"""Most sessions at a time; the oldest one ends for a further one."""


class Sessions:
    """Links and sessions. Thread-safe; all workers are served by this one object, because the supervisor has it."""

    def __init__(
        self, link_seconds: float, session_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._link_seconds = link_seconds
        self._session_seconds = session_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._links: dict[bytes, float] = {}
        self._sessions: dict[bytes, float] = {}

    def new_link(self) -> str:
        """Return a token of 256 bits with which `sign_in` succeeds once."""
        return self._add(self._links, self._link_seconds)

    def new_session(self) -> str:
        """Return the secret of a new session."""
        return self._add(self._sessions, self._session_seconds)

    def sign_in(self, token: str) -> str | None:
        """Use up the token of a link, and return the secret of a new session; None if it is not valid."""
        with self._lock:
            digest = self._find(self._links, token)
            if digest is None:
                return None
            del self._links[digest]
        return self.new_session()

    def is_valid(self, secret: str) -> bool:
        with self._lock:
            return self._find(self._sessions, secret) is not None

    def end(self, secret: str) -> None:
        """End a session, if there is one."""
        with self._lock:
            digest = self._find(self._sessions, secret)
            if digest is not None:
                del self._sessions[digest]

    def _add(self, known: dict[bytes, float], seconds: float) -> str:
        secret = secrets.token_urlsafe(_BYTES)
        with self._lock:
            if len(known) >= _MOST:
                del known[next(iter(known))]
            known[_digest(secret)] = self._clock() + seconds
        return secret

    def _find(self, known: dict[bytes, float], secret: str) -> bytes | None:
        """Return the digest of a secret that has not expired. Removes expired ones."""
        now = self._clock()
        for expired in [digest for digest, end in known.items() if end <= now]:
            del known[expired]
        searched = _digest(secret)
        found = [digest for digest in known if hmac.compare_digest(digest, searched)]
        return found[0] if found else None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()
