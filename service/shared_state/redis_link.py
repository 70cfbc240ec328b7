"""The connection of one worker to Redis: batches the reads of one turn of the event loop, and handles outages.

If Redis does not answer, commands raise `RedisUnavailableError`, and at once while Redis is known to be gone; the
caller decides whether its request continues without Redis. One warning reports the outage, and one line its end;
meanwhile connecting is tried once a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.exceptions import AskError, ClusterDownError, ReadOnlyError, ResponseError, TryAgainError

from rowcall.core.cache.redis_address import BadAddressError, RedisAddress, parse_redis
from rowcall.service.shared_state.redis_connection import FAILURES, MALFORMED, Client, is_cluster, open_client

log = logging.getLogger("rowcall.redis")

LONGEST = 1.0
"""Seconds that a request waits for Redis before it continues without it; a shorter `syncTimeout` takes precedence."""
TRY_AGAIN = 1.0
"""Seconds between two attempts to connect."""
IN_FLIGHT = 4
"""Maximum number of batches of reads in flight; keys that arrive meanwhile are in the next batch."""
AT_ONCE = 32
"""Maximum number of commands at the same time, and so of connections: opening hundreds of them takes longer than
waiting.
"""
PING = 0.3
"""Seconds between checks whether Redis still answers a listener."""
SILENT = 3.0
"""Seconds without an answer after which a listener reconnects."""
PROBE = "redis.call('SET', KEYS[1], '1', 'PX', 1000) return 1"
"""Script that shows at the start whether the user may run scripts that write."""

Hear = Callable[[bytes], Awaitable[None] | None]
"""Receives the payload of a message. If it returns an awaitable, that is awaited before the next message."""


class RedisUnavailableError(Exception):
    """Redis does not answer, or refuses the command."""


class MalformedReplyError(ValueError):
    """A reply does not fit the command that was sent: the connection is out of step, or its data is corrupt."""


def _with_echo(script: str) -> str:
    """Return a Lua script that runs this one and replies with two values: its own last argument, and the reply of this
    one.

    A connection that received one surplus reply gives every later command the reply to the command before. The form of
    the replies does not show that; an argument that differs for each call does.
    """
    return f"local function body() {script}\nend return {{ARGV[#ARGV], body()}}"


class RedisLink:
    """Connection to Redis. Construct it in the running event loop. on_back: list of functions to call whenever Redis
    answers again after an outage."""

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._timeout = min(address.timeout, LONGEST) or LONGEST
        self.client: Client = None
        """None until `connect` has succeeded."""
        self.is_cluster = False
        self.gone = True
        """Redis is known not to answer, so commands fail at once."""
        self._loop = asyncio.get_running_loop()
        self._requested: dict[bytes, asyncio.Future[bytes | None]] = {}
        """Reads for the next batch, by key."""
        self._scheduled = False
        self._flying = 0
        """Number of batches of reads in flight."""
        self._scripts: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusals: set[str] = set()
        """Kinds of refusals that have been logged."""
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.on_back: list[Callable[[], None]] = []

    async def connect(self) -> None:
        """Connect, and check that the user may run a script that writes.

        Raises:
            Errors of `redis_connection.FAILURES`: no host answers, a reply is malformed, or the user may not run the
                script.
        """
        client = await open_client(self._address, "rowcall")
        try:
            # Find out now, not at the first request, that the user may connect and yet do nothing.
            async with asyncio.timeout(self._timeout):
                await client.eval(PROBE, 1, b"rowcall:probe")
        except MALFORMED as error:
            await client.aclose()
            raise ConnectionError(f"a malformed reply: {error}") from None
        except BaseException:
            await client.aclose()
            raise
        self.client = client
        self.is_cluster = is_cluster(client)
        self.gone = False

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        if self.client is not None:
            await self.client.aclose()

    # --- commands --------------------------------------------------------------------------------------------------

    def get(self, key: bytes) -> Awaitable[bytes | None]:
        """Read a key (None: it does not exist), in one batch with all other reads of this turn of the event loop.
        Raises `RedisUnavailableError` when awaited, if Redis does not answer.
        """
        future = self._requested.get(key)
        if future is None:
            future = self._requested[key] = self._loop.create_future()
            if not self._scheduled and self._flying < IN_FLIGHT:
                self._scheduled = True
                self._loop.call_soon(self._send)
        return future

    def _send(self) -> None:
        """Send the reads of this turn of the event loop."""
        self._scheduled = False
        requested, self._requested = self._requested, {}
        if requested:
            self._flying += 1
            self.background(self._get_all(requested))

    async def _get_all(self, requested: dict[bytes, asyncio.Future[bytes | None]]) -> None:
        """Read all keys in one command, and complete their futures; with `RedisUnavailableError` if that fails.
        requested: the futures, by key.
        """
        try:
            mget = None if self.client is None else self.client.mget_nonatomic if self.is_cluster else self.client.mget
            values: Sequence[bytes | None] = await self.ask(mget, list(requested), check=_values_of(len(requested)))
        except BaseException as error:
            # Whatever has failed: a future that is never done would let a request wait forever.
            for future in requested.values():
                if not future.done():
                    future.set_exception(RedisUnavailableError())
                    # avoids a warning about an exception that is never retrieved, as the request may have ended
                    future.exception()
            if not isinstance(error, RedisUnavailableError):
                raise
        else:
            for future, value in zip(requested.values(), values, strict=True):  # `_values_of` has checked their number
                if not future.done():
                    future.set_result(value)
        finally:
            self._flying -= 1
            if self._requested and not self._scheduled:
                self._scheduled = True
                self._loop.call_soon(self._send)

    async def run(self, script: str, keys: list[bytes], values: list[bytes | int]) -> Any:
        """Run a Lua script, which is atomic, and return its reply; None if it has none. keys, values: KEYS and ARGV of
        the script. Raises `RedisUnavailableError` if Redis does not answer.
        """
        registered = self._scripts.get(script)
        if registered is None and self.client is not None:
            registered = self._scripts[script] = self.client.register_script(_with_echo(script))
        mark = secrets.token_hex(8).encode()
        reply = await self.ask(registered, keys, [*values, mark], check=_echo_of(mark))
        return reply[1] if len(reply) == 2 else None

    async def ask(
        self,
        command: Callable[..., Awaitable[Any]] | None,
        *arguments: Any,
        check: Callable[[Any], bool] | None = None,
    ) -> Any:
        """Send a command and return its reply.

        command: a method of the client, called with `arguments`; None: there is no connection. check: whether a reply
        has the form of this command; if not, the command fails and all connections are closed.

        Raises:
            RedisUnavailableError: Redis has not answered, has refused the command, or is known to be gone.
        """
        if self.gone or command is None:
            raise RedisUnavailableError
        client = self.client
        try:
            async with self._slots:
                if self.gone or client is not self.client:
                    raise RedisUnavailableError  # `command` belongs to the connection to the previous master
                async with asyncio.timeout(self._timeout):
                    reply = await command(*arguments)
            return _check_reply(reply, check)
        except MALFORMED as error:
            if client is self.client:
                self._on_connection_lost(error)
                await self._disconnect()
            raise RedisUnavailableError from None
        except FAILURES as error:
            if isinstance(error, ResponseError) and not _is_no_master(error):
                self._log_refusal(error)
            elif client is self.client:
                self._on_connection_lost(error)
            raise RedisUnavailableError from None

    def _log_refusal(self, error: ResponseError) -> None:
        """Log once for each kind of error that Redis answers and refuses a command: its memory is full, or the user
        lacks a permission.
        """
        kind = str(error).partition(" ")[0]
        if kind not in self._refusals:
            self._refusals.add(kind)
            log.warning("Redis at %s refuses commands, these requests go on without it: %s", self._address, error)

    async def listen(
        self, channel: bytes, hear: Hear, began: Callable[[], None], heard: Callable[[float], None] | None = None
    ) -> None:
        """Receive the messages of a channel forever. Run it in the background.

        began: called when listening begins (again): messages published before are lost. heard: called with a time of
        the monotonic clock; all messages published before that time have been received.
        """
        while True:
            try:
                await self._listen_once(channel, hear, began, heard)
            except (*FAILURES, *MALFORMED) as error:
                log.debug("not listening to Redis: %s", error)
            await asyncio.sleep(PING)

    async def _listen_once(
        self, channel: bytes, hear: Hear, began: Callable[[], None], heard: Callable[[float], None] | None
    ) -> None:
        """Receive the messages of a channel until the connection is lost. Parameters: as for `listen`. Raises the
        errors of `FAILURES` and `MALFORMED`, and `TimeoutError` if Redis has not answered for `SILENT` seconds.
        """
        async with self.client.pubsub() as source:
            requested, waiting = time.monotonic(), True
            await source.subscribe(channel)
            while True:
                message = await source.get_message(timeout=PING)
                kind = None if message is None else message["type"]
                if kind == "message":
                    result = hear(message["data"])
                    if result is not None:
                        await result
                elif kind in ("subscribe", "pong"):
                    if kind == "subscribe":
                        began()
                    waiting = False
                    if heard is not None:
                        heard(requested)
                past = time.monotonic() - requested
                if waiting and past > SILENT:
                    raise TimeoutError("a listener is not answered")
                if not waiting and past > PING:
                    # One ping at a time, so that its answer can be assigned to it.
                    requested, waiting = time.monotonic(), True
                    await source.ping()

    # --- outages ---------------------------------------------------------------------------------------------------

    def _on_connection_lost(self, error: BaseException) -> None:
        """Record and log that Redis is gone, and begin to look for it. error: the reason, for the log."""
        if self.gone:
            return
        self.gone = True
        reason = str(error).strip() or f"no answer within {self._timeout:g} s"
        log.warning("Redis at %s is gone, requests go on without it: %s", self._address, reason)
        self.background(self._look_for_it())

    async def _disconnect(self) -> None:
        """Close every connection: it is not known which of them is out of step."""
        with contextlib.suppress(*FAILURES, *MALFORMED):
            if self.is_cluster:
                await self.client.aclose()
            else:
                await self.client.connection_pool.disconnect(inuse_connections=True)

    async def _look_for_it(self) -> None:
        """Try to connect until it succeeds, then call the functions of `on_back`."""
        while self.gone:
            await asyncio.sleep(TRY_AGAIN)
            try:
                await self._reach_master()
            except (*FAILURES, *MALFORMED):
                continue
            self.gone = False
            log.warning("Redis at %s is back", self._address)
            for on_back in self.on_back:
                on_back()

    async def _reach_master(self) -> None:
        """Check that Redis answers. If only addresses of servers are known, connect to the master among them with a new
        client: another server may have been promoted. The clients of Sentinels and of a Cluster follow a new master
        themselves. Raises the errors of `FAILURES` and `MALFORMED` if no master answers.
        """
        if self.is_cluster or self._address.service is not None:
            async with asyncio.timeout(self._timeout):
                await self.client.ping()
            return
        previous, self.client = self.client, await open_client(self._address, "rowcall")
        self.is_cluster = is_cluster(self.client)
        self._scripts.clear()
        with contextlib.suppress(*FAILURES, *MALFORMED):
            await previous.aclose()

    def background(self, work: Any) -> None:
        """Run a coroutine in a task. An error is logged."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task for Redis failed", exc_info=error)


def _check_reply(reply: Any, check: Callable[[Any], bool] | None) -> Any:
    """Return the reply. Raises `MalformedReplyError` if `check` returns False for it; None: every reply is accepted."""
    if check is not None and not check(reply):
        raise MalformedReplyError("a reply of unexpected form")
    return reply


def _values_of(count: int) -> Callable[[Any], bool]:
    """Return the check that a reply has this number of values, each of them bytes or None."""

    def check(reply: Any) -> bool:
        values = isinstance(reply, list) and len(reply) == count
        return values and all(value is None or isinstance(value, bytes) for value in reply)

    return check


def _echo_of(mark: bytes) -> Callable[[Any], bool]:
    """Return the check that a reply begins with this mark, as a script of `_with_echo` makes it."""
    return lambda reply: isinstance(reply, list) and len(reply) in (1, 2) and reply[0] == mark


def _is_no_master(error: ResponseError) -> bool:
    """Return whether an error means that this server cannot run the command now, but another one or a later attempt
    may: it is not the master (any more), or its Cluster is down or moves data. When the client reconnects, it looks for
    the master."""
    if isinstance(error, (ReadOnlyError, ClusterDownError, AskError, TryAgainError)):
        return True
    return "READONLY" in str(error) or "CLUSTERDOWN" in str(error)


class LateLink:
    """A link whose first attempt to connect runs in the background, so that it does not delay the start. Calls of
    `link` wait for that attempt; after a failure, later calls begin further ones without waiting.

    Construct it in the running event loop. address: as configured; if it is invalid, that is logged, and there is never
    a connection. key: configuration key of the address. without: what happens without a connection, for log messages.
    """

    def __init__(self, address: str, key: str, without: str) -> None:
        self._key = key
        self._without = without
        self._link: RedisLink | None = None
        self._reported = False
        self._tried = 0.0
        try:
            self._place: RedisAddress | None = parse_redis(address)
        except BadAddressError as error:
            log.error("%s: %s; %s", key, error, without)
            self._place = None
        self._connecting = None if self._place is None else asyncio.create_task(self._connect(self._place))

    async def link(self) -> RedisLink | None:
        """Return the link; None if there is no connection.

        The first attempt to connect is awaited. Later ones run in the background, and do not delay the caller.
        """
        if self._link is not None:
            return self._link
        connecting, place = self._connecting, self._place
        if connecting is None or place is None:
            return None
        if not self._reported:
            await asyncio.shield(connecting)
        elif connecting.done() and time.monotonic() - self._tried >= TRY_AGAIN:
            self._connecting = asyncio.create_task(self._connect(place))
        return self._link

    async def _connect(self, place: RedisAddress) -> None:
        """Try to connect once. The first failure is logged, and the success after it."""
        self._tried = time.monotonic()
        link = RedisLink(place)
        try:
            await link.connect()
        except FAILURES as error:
            if not self._reported:
                log.error("Redis at %s cannot be reached: %s; %s", place, str(error).strip(), self._without)
            self._reported = True
            return
        if self._reported:
            log.warning("Redis at %s can be reached now", place)
        self._link = link
