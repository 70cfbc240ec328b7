"""Drills: faults that take seconds to show. `make drills` runs them; `make test` leaves them out.

What is asserted is never how long something took; a client that waits no longer than it should is the clock.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.http.conftest import _no_traceback, serve, serve_once

__all__ = ["_no_traceback", "serve", "serve_once"]


_HERE = str(Path(__file__).parent) + os.sep


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(_HERE):
            item.add_marker("drill")
