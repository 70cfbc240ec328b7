"""The layer with all input and output: HTTP, database, files, clocks, processes."""

from __future__ import annotations

import time

IMPORTED_AT = time.monotonic()
"""Monotonic time at which the package was imported, in seconds."""
