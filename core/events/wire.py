"""The text of an event stream (HTML standard, 9.2; events-8, events-9)."""

from __future__ import annotations

import re

CONNECTED = b": connected\n\n"
"""Flushed when the subscription holds: whatever is published from here on arrives."""
BEAT = b":\n\n"
"""Keeps proxies from closing an idle stream; clients ignore it."""

_LINE_END = re.compile(r"\r\n|\r|\n")


def event_text(message: str, event_id: str = "") -> bytes:
    """`data: ` and a line of the message, for each of its lines, then an empty one."""
    if "\n" in message or "\r" in message:
        message = "\ndata: ".join(_LINE_END.split(message))
    if event_id:
        return f"id: {event_id}\ndata: {message}\n\n".encode()
    return f"data: {message}\n\n".encode()


def named_text(name: str, data: str) -> bytes:
    """An event that only `addEventListener(name, …)` hears."""
    return f"event: {name}\ndata: {data}\n\n".encode()


def retry_text(milliseconds: int) -> bytes:
    """How long clients wait before they connect again."""
    return f"retry: {milliseconds}\n\n".encode()


def id_text(event_id: str) -> bytes:
    """Where a client is that has not got an event yet."""
    return f"id: {event_id}\n\n".encode()
