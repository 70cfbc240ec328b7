"""The text of an event stream (HTML standard, 9.2; events-8, events-9)."""

from __future__ import annotations

import re

CONNECTED = b": connected\n\n"
"""Sent when the subscription is registered: every event published from now on is delivered."""
BEAT = b":\n\n"
"""Heartbeat, which keeps proxies from closing an idle stream; clients ignore it."""

_LINE_END = re.compile(r"\r\n|\r|\n")


def event_text(message: str, event_id: str = "") -> bytes:
    """Return the text of an event: `id: ` if there is an id, `data: ` for each line of the message, then an empty
    line."""
    if "\n" in message or "\r" in message:
        message = "\ndata: ".join(_LINE_END.split(message))
    if event_id:
        return f"id: {event_id}\ndata: {message}\n\n".encode()
    return f"data: {message}\n\n".encode()


def named_text(name: str, data: str) -> bytes:
    """Return the text of an event that only `addEventListener(name, …)` receives. data: a single line."""
    return f"event: {name}\ndata: {data}\n\n".encode()


def retry_text(milliseconds: int) -> bytes:
    """Return the text that sets how long clients wait before they reconnect."""
    return f"retry: {milliseconds}\n\n".encode()


def id_text(event_id: str) -> bytes:
    """Return the text that gives a position in the stream to a client that has not received an event yet."""
    return f"id: {event_id}\n\n".encode()
