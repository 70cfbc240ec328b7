"""Lock-out and slow-down of sign-ins, by account and by address, without letting an attacker lock others out.

Failures of an account are counted separately for each browser that has signed in to it before, which a cookie proves
(OWASP, "Slow Down Online Guessing Attacks with Device Cookies"), and for each address from which it was signed in to.
So failures of an attacker delay only callers who are unknown. An unknown account is counted like an existing one: the
name of the request is counted, not the user that was found.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import secrets
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import orjson

from rowcall.core.accounts.lockout import Attempt, Limit, LockoutOptions
from rowcall.core.auth.cookies import cookie_value
from rowcall.core.errors.problems import Problem
from rowcall.core.http.forwarded_headers import network_of
from rowcall.core.protection.key_ring import Key
from rowcall.service.identity.session_cookies import CookieProtocol
from rowcall.service.identity.sessions import Sessions
from rowcall.service.identity.sign_in_counts import SIZE, Counts, HostCounts, RedisCounts
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.protection.errors import NoKeyError, SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys, Protector
from rowcall.service.request_context.header_values import cookie_header
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext
from rowcall.service.shared_state.host_state import HostState

log = logging.getLogger("rowcall")

REFUSED = "too many sign-ins have failed; try again later"
LONGEST = 1024
"""Most characters of a cookie that is read."""
_NONCE = 16

Count = Callable[[str], None]
"""Counts an outcome: `failed`, `refused` or `locked`."""


class GuardIdentity(Protocol):
    """The attributes of `service.identity.identity.Identity` that the guard needs: keys, sessions, client address."""

    keys: Keys
    sessions: Sessions
    address: Callable[[Any], bytes | None]


class _Counter(NamedTuple):
    """A counter to which an attempt is added."""

    key: bytes
    limit: Limit
    about: str
    """What is counted, for the log."""
    of_address: bool = False
    """The address is counted, and not the account."""


class SignInGuard:
    """The counting of sign-ins in one worker."""

    def __init__(
        self,
        options: LockoutOptions,
        keys: Keys,
        sessions: Sessions,
        address: Callable[[Any], bytes | None],
        counts: Counts,
        count: Count,
    ) -> None:
        self.options = options
        self.counts = counts
        self.count = count
        self._keys = keys
        self._sessions = sessions
        self._address = address
        self._protector = Protector(keys, "known devices")
        self._attempts: dict[RequestContext, SignInAttempt] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def begin(self, context: RequestContext, account: str | None, name: str) -> SignInAttempt:
        """Count an attempt to sign in and return it. It counts as a failure unless `record_success` or `withdraw` is
        called, or the request ends in an error of the service. Raises `Problem` 429 if the account or the address has
        too many failures, and `NoKeyError` if the key ring has no usable key.

        account: as the request names it, normalized; None: only the address is counted. name: of the endpoint.
        """
        address = self._address(context.scope)
        network = None if address is None else network_of(address.decode())
        counters = await self._counters(context, account, network)
        counted: list[_Counter] = []
        locks: list[str] = []
        for counter in counters:
            attempt = await self.counts.begin(counter.key, counter.limit)
            if attempt.wait > 0:
                for earlier in counted:
                    await self.counts.give_back(earlier.key, earlier.limit)
                raise self._refusal(name, counter, attempt.wait)
            counted.append(counter)
            if attempt.failures >= counter.limit.failures:
                locks.append(f"{counter.about}: {attempt.failures} have failed, delay {_delay(counter, attempt)} s")
        result = SignInAttempt(self, name, counters, locks, account, network)
        self._attempts[context] = result
        context.at_end(self._end)
        return result

    def attempt_of(self, context: RequestContext) -> SignInAttempt | None:
        """Return the attempt that this request has begun, or None."""
        return self._attempts.get(context)

    async def _counters(self, context: RequestContext, account: str | None, network: str | None) -> list[_Counter]:
        """Return the counters of an attempt, in the order in which it is added: the address first, because an attempt
        that it refuses must not add to the failures of the account; then the account, counted separately for an address
        from which it was signed in to before. For a known browser of the account, only the counter of this browser.

        account, network: None: not counted. Raises `NoKeyError`.
        """
        by_address = []
        if network is not None:
            about = f"sign-ins from {network}"
            by_address = [_Counter(self.key("address", network), self.options.address, about, of_address=True)]
        if account is None:
            return by_address
        limit, shown = self.options.account, escape_unprintable(account)[:100]
        device = await self._device(context, account)
        if device is not None:
            return [_Counter(self.key("device", account, device), limit, f"sign-ins of {shown} in a known browser")]
        if network is not None and await self.counts.knows(self.key("known", account, network)):
            about = f"sign-ins of {shown} from {network}, which is known"
            return [*by_address, _Counter(self.key("known address", account, network), limit, about)]
        return [*by_address, _Counter(self.key("account", account), limit, f"sign-ins of {shown} by unknown callers")]

    def _refusal(self, name: str, counter: _Counter, wait: float) -> Problem:
        """Count and log a refused attempt, and return the 429 for it. wait: seconds until the next one is permitted."""
        self.count("refused")
        log.info("%s: refused for %d s: %s", name, math.ceil(wait), counter.about)
        return Problem(429, REFUSED, headers=(("retry-after", str(max(1, math.ceil(wait)))),))

    def key(self, *parts: str) -> bytes:
        """Return the key of a counter: a keyed hash of what is counted, and of the account, device and network that it
        is counted for. Raises `NoKeyError` if the key ring has no usable key.
        """
        now = time.time()
        key: Key | None = self._keys.ring.latest_active_key(now) or self._keys.ring.protecting_key(now)
        if key is None:
            raise NoKeyError
        secret = hashlib.sha256(b"rowcall sign-ins\0" + key.secret).digest()
        return hashlib.blake2b("\0".join(parts).encode(errors="surrogateescape"), key=secret, digest_size=24).digest()

    # --- known browsers ---------------------------------------------------------------------------------------

    async def _device(self, context: RequestContext, account: str) -> str | None:
        """Return the random number in the cookie of a browser that has signed in to the account before, or None for
        another browser.
        """
        scope = context.scope
        if "cookie" not in scope.headers:
            return None
        value = cookie_value(cookie_header(scope.headers), self.options.cookie)
        if value is None or len(value) > LONGEST:
            return None
        try:
            try:
                content = self._protector.open(value)
            except UnknownKeyError:
                await self._keys.read_again()
                content = self._protector.open(value)
            key, number, expires = orjson.loads(content)
        except (SealError, ValueError):
            return None
        return number if key == _digest(account) and expires > time.time() else None

    def remember_device(self, context: RequestContext, account: str) -> None:
        """Add a cookie to the response, by which the browser is known as a device of the account from now on. Raises
        `NoKeyError`.
        """
        expires = int(time.time() + self.options.known_for)
        content = orjson.dumps([_digest(account), secrets.token_hex(_NONCE), expires])
        secure = "; secure" if self._sessions.is_secure(context.scope) else ""
        attributes = f"; max-age={int(self.options.known_for)}; path=/{secure}; samesite=lax; httponly"
        cookie = f"{self.options.cookie}={self._protector.seal(content)}{attributes}"
        context.protocol = CookieProtocol(context.protocol, [cookie])

    # --- the end of a request ---------------------------------------------------------------------------------

    def _end(self, context: RequestContext, error: Exception | None) -> None:
        """End the attempt of a request, unless it has ended already: it failed, succeeded or was withdrawn.

        If the request ended without an error, or with a `Problem` whose status is below 500, report a failure. If the
        client has disconnected, the attempt remains counted, without a report. After any other error, withdraw the
        attempt. error: the error with which the request ended; None: none.
        """
        attempt = self._attempts.pop(context, None)
        if attempt is None or attempt.ended:
            return
        if error is None or (isinstance(error, Problem) and error.status < 500):
            attempt.fail()
            return
        if not isinstance(error, ClientDisconnectedError):  # such a client may have tried to leave no trace
            task = asyncio.ensure_future(attempt.withdraw())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


def guard_of(options: LockoutOptions, identity: GuardIdentity, host: HostState, count: Count) -> SignInGuard:
    """Return a new guard, which counts in Redis if the options have one, else in the shared state of the host. count:
    counts outcomes for the metrics."""
    on_host = HostCounts(host.environment("sign-ins", SIZE))
    counts = on_host if options.redis is None else RedisCounts(options.redis, on_host)
    return SignInGuard(options, identity.keys, identity.sessions, identity.address, counts, count)


class SignInAttempt:
    """An attempt that is counted, in `counters`. name: of the endpoint, for the log. locks: messages to log if it
    fails, one for each counter that then delays further attempts. account: as for `SignInGuard.begin`. network: of the
    client; None: unknown.
    """

    def __init__(
        self,
        guard: SignInGuard,
        name: str,
        counters: list[_Counter],
        locks: list[str],
        account: str | None,
        network: str | None,
    ) -> None:
        self._guard = guard
        self._name = name
        self._counters = counters
        self._locks = locks
        self._account = account
        self._network = network
        self.ended = False

    def fail(self) -> None:
        """Report a failure, which is counted already."""
        self.ended = True
        self._guard.count("failed")
        for lock in self._locks:
            self._guard.count("locked")
            log.warning("%s: %s", self._name, lock)

    async def record_success(self, context: RequestContext, *, by_browser: bool) -> None:
        """Reset the counter of the account to which this attempt was added, and record its network and browser as
        known. Raises `NoKeyError`.

        The other counters of the account remain: a sign-in in a known browser does not reset the failures of unknown
        callers. The failures of the address remain, without this attempt: an attacker could reset them by signing in to
        an account of their own. by_browser: the caller may be a browser, which stores a cookie.
        """
        self.ended = True
        counts = self._guard.counts
        for counter in self._counters:
            if counter.of_address:
                await counts.give_back(counter.key, counter.limit)
            else:
                await counts.forget(counter.key)
        if self._account is None:
            return
        if self._network is not None:
            known = self._guard.key("known", self._account, self._network)
            await counts.remember(known, self._guard.options.known_for)
        if by_browser:
            self._guard.remember_device(context, self._account)

    async def withdraw(self) -> None:
        """Remove the attempt from its counters, because it has neither failed nor succeeded."""
        self.ended = True
        for counter in self._counters:
            await self._guard.counts.give_back(counter.key, counter.limit)


def _digest(account: str) -> str:
    return hashlib.sha256(account.encode(errors="surrogateescape")).hexdigest()


def _delay(counter: _Counter, attempt: Attempt) -> int:
    """Return the seconds that the next attempt has to wait, rounded up."""
    return math.ceil(counter.limit.delay_after(attempt.failures))
