"""Everything that touches the world: HTTP, database, files, clocks, processes."""

from __future__ import annotations

import time

IMPORTED_AT = time.monotonic()
"""Reading of the clock when the package was imported."""
