"""The address of the PGresult behind a psycopg cursor: what `Renderer.render_result` takes."""

from __future__ import annotations

from typing import Any, Protocol, cast

import psycopg


class _WithAddress(Protocol):
    pgresult_ptr: int


def address_of(cursor: psycopg.Cursor[Any]) -> int:
    """Valid while the cursor keeps its result. psycopg's C class has the attribute, its typed protocol does not."""
    assert cursor.pgresult is not None
    return cast("_WithAddress", cursor.pgresult).pgresult_ptr
