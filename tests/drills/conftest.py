"""Drills: faults that take seconds to show. `make drills` runs them; `make test` leaves them out.

No test asserts how long something took; a client with a timeout is the clock.
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
