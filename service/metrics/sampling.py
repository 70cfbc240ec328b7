"""Sampling profiler: a thread records the stacks of all threads, many times a second.

For systems where py-spy is not installed or not allowed. It sees Python frames only, and a call into C as the line that
makes the call.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from types import FrameType

EVERY = 0.005
"""Seconds between two samples. Each takes some twenty microseconds."""


async def sample_stacks(seconds: float) -> str:
    """Return the stacks of all other threads with their counts, one per line, the most frequent first:
    `module:function:line;module:function:line 17`, from the outermost call on (Brendan Gregg's collapsed form, the
    input of flame graphs). seconds: duration of the sampling.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()

    def take_samples() -> None:
        counts: Counter[str] = Counter()
        own_thread = threading.get_ident()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(EVERY)
            for thread, frame in sys._current_frames().items():
                if thread != own_thread:
                    counts[_stack(frame)] += 1
        text = "".join(f"{stack} {count}\n" for stack, count in counts.most_common())
        loop.call_soon_threadsafe(_set, done, text)

    threading.Thread(target=take_samples, name="profile", daemon=True).start()
    return await done


def _set(future: asyncio.Future[str], text: str) -> None:
    if not future.done():
        future.set_result(text)


def _stack(frame: FrameType | None) -> str:
    parts: list[str] = []
    while frame is not None:
        code = frame.f_code
        parts.append(f"{frame.f_globals.get('__name__', '?')}:{code.co_qualname}:{frame.f_lineno}")
        frame = frame.f_back
    return ";".join(reversed(parts))
