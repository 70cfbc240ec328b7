"""The header Server-Timing of one request.

Source: PostgREST's documentation, Observability.
"""

from __future__ import annotations

import time


class Timing:
    """Measures the parts of a request, one behind the other."""

    __slots__ = ("_last", "_parts")

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._parts: list[str] = []

    def mark(self, name: str) -> None:
        """End a part that began with the end of the one before."""
        now = time.perf_counter()
        self._parts.append(f"{name};dur={(now - self._last) * 1000:.1f}")
        self._last = now

    @property
    def header(self) -> tuple[str, str]:
        return "Server-Timing", ", ".join(self._parts)
