"""`notifications/cancelled` of the Model Context Protocol: the statement of a running call is cancelled.

The notification is a request of its own, which any worker of the host may get. It goes to all of them by the message
bus, and names its call by the client and the id of the JSON-RPC request. A client is known by the session id that
`initialize` has given it, else by its credentials and address: ids alone are 1, 2, 3 for every client. An anonymous
client without a session id can cancel nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import orjson

from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.shared_state.host_state import HostState

TOPIC = "mcp-cancelled"
SESSION = "mcp-session-id"
_CREDENTIALS = ("authorization", "cookie")

Done = TypeVar("Done")


class CancelledCallError(Exception):
    """The client has cancelled the call."""


def call_key(context: RequestContext, request_id: object) -> bytes | None:
    """Digest of the client and the id of its request; None for a client that cannot be told from others."""
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
    """Tell all workers of the host. A call that is over is not affected."""
    key = call_key(context, request_id)
    if key is not None:
        host.message_bus.publish(TOPIC, key)


async def until_cancelled(
    context: RequestContext, request_id: object, host: HostState, call: Callable[[RequestContext], Awaitable[Done]]
) -> Done:
    """Return what `call` gives for an exchange whose client seems to leave when it cancels the request.

    Raises:
        CancelledCallError: it has cancelled it. What runs in the database is cancelled as for clients that leave.
    """
    key = call_key(context, request_id)
    if key is None:
        return await call(context)
    cancelled = asyncio.get_running_loop().create_future()

    def take(message: bytes) -> None:
        if message == key and not cancelled.done():
            cancelled.set_result(None)

    end = host.message_bus.subscribe(TOPIC, take)
    watched = RequestContext(context.scope, _Leaving(context.protocol, cancelled))
    watched.deadline = context.deadline
    running = asyncio.ensure_future(call(watched))
    try:
        await asyncio.wait((running, cancelled), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        # The statement ends by itself, as it does for a client that has left, and nobody waits for its answer.
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


class _Leaving:
    """The protocol of the client, who has left when the call is cancelled too."""

    def __init__(self, protocol: Any, cancelled: asyncio.Future[None]) -> None:
        self._protocol = protocol
        self._cancelled = cancelled

    async def client_disconnect(self) -> None:
        gone = asyncio.ensure_future(self._protocol.client_disconnect())
        try:
            await asyncio.wait((gone, self._cancelled), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
