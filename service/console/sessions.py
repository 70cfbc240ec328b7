"""Sign-in of operators: links for one use, and sessions, in the memory of the supervisor.

Only digests are stored, and all of them are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

_BYTES = 32
_MOST = 100
"""Most sessions at a time; the oldest one ends for a further one."""

Headers = tuple[tuple[str, str], ...]

BY_LINK = "sign-in link"
BY_TOKEN = "Admin:BearerToken"  # noqa: S105 (the name of a key)


@dataclass(frozen=True, slots=True)
class Session:
    """A session of an operator. id: names it to other operators, and is no secret. Times in seconds since 1970."""

    id: str
    operator: str
    """Who has signed in: the name of a user of the service, or the way of the sign-in (link, token)."""
    address: str
    """Client address at the sign-in; empty for a Unix socket."""
    began: float
    expires: float
    credentials: Headers = field(default=(), repr=False)
    """Request headers with which a user of the service has authenticated; they are checked again and again. Empty for
    sessions by link or token.
    """


@dataclass(frozen=True, slots=True)
class _TimedEntry:
    """An entry that expires: a link to sign in with, or (as the base of `_SessionEntry`) a session."""

    ends: float
    """Seconds of the clock."""


@dataclass(frozen=True, slots=True)
class _SessionEntry(_TimedEntry):
    """A session of an operator, with the time at which it expires."""

    session: Session


Stored = TypeVar("Stored", bound=_TimedEntry)


class Sessions:
    """Links and sessions of operators. Thread-safe; there is one object, in the supervisor, for all requests."""

    def __init__(
        self, link_seconds: float, session_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._link_seconds = link_seconds
        self._session_seconds = session_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._links: dict[bytes, _TimedEntry] = {}
        self._sessions: dict[bytes, _SessionEntry] = {}

    def new_link(self) -> str:
        """Return a token of 256 bits with which `sign_in` succeeds once, until it expires."""
        return self._add(self._links, _TimedEntry(self._clock() + self._link_seconds))

    def new_session(
        self, operator: str, address: str = "", credentials: Headers = (), longest: float = math.inf
    ) -> str:
        """Return the secret of a new session. If there are too many (`_MOST`), the oldest one ends. operator, address,
        credentials: as in `Session`. longest: seconds after which it ends at the latest."""
        began, seconds = time.time(), min(self._session_seconds, longest)
        session = Session(secrets.token_hex(8), operator, address, began, began + seconds, credentials)
        return self._add(self._sessions, _SessionEntry(self._clock() + seconds, session))

    def sign_in(self, token: str, address: str = "") -> str | None:
        """Begin a session with the token of a link, which cannot be used again. Return the secret of the session; None
        if the token is not valid. address: as in `Session`.
        """
        with self._lock:
            digest = self._find(self._links, token)
            if digest is None:
                return None
            del self._links[digest]
        return self.new_session(BY_LINK, address)

    def find(self, secret: str) -> Session | None:
        """Return the session with this secret, or None."""
        with self._lock:
            digest = self._find(self._sessions, secret)
            return None if digest is None else self._sessions[digest].session

    def list_sessions(self) -> list[Session]:
        """Return all sessions, the oldest first."""
        with self._lock:
            self._remove_expired(self._sessions)
            return [item.session for item in self._sessions.values()]

    def end(self, secret: str) -> None:
        """End the session with this secret, if there is one."""
        with self._lock:
            digest = self._find(self._sessions, secret)
            if digest is not None:
                del self._sessions[digest]

    def end_named(self, name: str) -> bool:
        """End the session with this id. Return whether there was one."""
        with self._lock:
            found = [digest for digest, item in self._sessions.items() if item.session.id == name]
            for digest in found:
                del self._sessions[digest]
        return bool(found)

    def _add(self, known: dict[bytes, Stored], item: Stored) -> str:
        """Store an item under a new secret, and return the secret. If there are too many items, the oldest one is
        removed. known: links or sessions by digest, which gets the item.
        """
        secret = secrets.token_urlsafe(_BYTES)
        with self._lock:
            if len(known) >= _MOST:
                del known[next(iter(known))]
            known[_digest(secret)] = item
        return secret

    def _remove_expired(self, known: dict[bytes, Stored]) -> None:
        now = self._clock()
        for expired in [digest for digest, item in known.items() if item.ends <= now]:
            del known[expired]

    def _find(self, known: dict[bytes, Stored], secret: str) -> bytes | None:
        """Return the digest of a secret that is known and has not expired, or None. Expired entries are removed. known:
        links or sessions by digest. The caller holds the lock.
        """
        self._remove_expired(known)
        searched = _digest(secret)
        found = [digest for digest in known if hmac.compare_digest(digest, searched)]
        return found[0] if found else None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()
