"""Work on large bodies outside the event loop, one at a time, so that it does not delay other requests.

Python runs one thread at a time, so more threads would only compete with the event loop more often.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

LARGE_BODY = 65_536
"""Bytes of a body from which the thread pays off."""

_thread = ThreadPoolExecutor(1, "bodies")


async def run_in_body_thread(work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Run the work in the thread for large bodies, after all work that was submitted to the thread before, and return
    its result."""
    return await asyncio.get_running_loop().run_in_executor(_thread, work, *arguments)
