"""Work on large bodies, off the event loop and one at a time: its other requests are not to wait for it.

Python runs one thread at a time, so more of them would only take turns with the event loop more often.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

LARGE_BODY = 65_536
"""Bytes from which it pays."""

_thread = ThreadPoolExecutor(1, "bodies")


async def aside(work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    return await asyncio.get_running_loop().run_in_executor(_thread, work, *arguments)
