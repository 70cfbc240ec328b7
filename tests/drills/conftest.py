"""Drills: faults that take seconds to show. `make drills` runs them; `make test` leaves them out.

What is asserted is never how long something took; a client that waits no longer than it should is the clock.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.conftest import _no_traceback, serve, serve_once

__all__ = ["_no_traceback", "serve", "serve_once"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("drill")
