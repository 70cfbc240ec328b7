"""`notifications/cancelled` of the Model Context Protocol: cancel the statement of a running call.

The notification is a separate request, which any worker of the host may receive. It is published to all workers on the
message bus, and identifies its call by the client and the id of the JSON-RPC request. A client is identified by the
session id from `initialize`, else by its credentials and address: ids alone are 1, 2, 3 for every client. An anonymous
client without a session id cannot cancel anything.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import orjson

from rowcall.service.request_context.protocols import ObservedProtocol
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.shared_state.host_state import HostState

TOPIC = "mcp-cancelled"
SESSION = "mcp-session-id"
_CREDENTIALS = ("authorization", "cookie")

Done = TypeVar("Done")


class CancelledCallError(Exception):
    """The client has cancelled the call."""


def call_key(context: RequestContext, request_id: object) -> bytes | None:
    """Return a digest of the client and the id of its request; None for a client that cannot be identified, and for an
    id that JSON-RPC does not allow.
    """
    headers = context.scope.headers
    session = headers.get(SESSION)
    credentials = [headers.get(name) or "" for name in _CREDENTIALS]
    if not session and not any(credentials):
        return None
    if not isinstance(request_id, str | int):
        return None
    client = [session] if session else [*credentials, str(context.scope.client).rpartition(":")[0]]
    return hashlib.sha256(orjson.dumps([client, str(type(request_id)), str(request_id)])).digest()


def cancel_call(context: RequestContext, request_id: object, host: HostState) -> None:
    """Publish a cancellation to all workers of the host. A finished call is not affected. Does nothing for a client
    that cannot be identified. request_id: id of the JSON-RPC request of the call.
    """
    key = call_key(context, request_id)
    if key is not None:
        host.message_bus.publish(TOPIC, key)


async def until_cancelled(
    context: RequestContext, request_id: object, host: HostState, call: Callable[[RequestContext], Awaitable[Done]]
) -> Done:
    """Run `call` and return its result. If the client cancels it, the running call is ended as if the client had
    disconnected.

    For a client that cannot be identified (`call_key`), the call is only cancelled together with this task. request_id:
    id of the JSON-RPC request. call: gets the request context to run with, whose protocol reports the disconnect.

    Raises:
        CancelledCallError: the client has cancelled the call. Its result is ignored.
    """
    key = call_key(context, request_id)
    if key is None:
        return await call(context)
    cancelled = asyncio.get_running_loop().create_future()

    def take(message: bytes) -> None:
        if message == key and not cancelled.done():
            cancelled.set_result(None)

    end = host.message_bus.subscribe(TOPIC, take)
    watched = RequestContext(context.scope, _CancelledProtocol(context.protocol, cancelled))
    watched.deadline = context.deadline
    running = asyncio.ensure_future(call(watched))
    try:
        await asyncio.wait((running, cancelled), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        # The statement is cancelled as for a disconnected client, and its result is ignored.
        running.add_done_callback(_ignore)
        raise CancelledCallError
    except asyncio.CancelledError:
        running.cancel()
        raise
    finally:
        end()


def _ignore(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()


class _CancelledProtocol(ObservedProtocol):
    """A protocol whose client seems to disconnect when the call is cancelled."""

    def __init__(self, protocol: Any, cancelled: asyncio.Future[None]) -> None:
        super().__init__(protocol)
        self._cancelled = cancelled

    async def client_disconnect(self) -> None:
        gone = asyncio.ensure_future(self.inner.client_disconnect())
        try:
            await asyncio.wait((gone, self._cancelled), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
