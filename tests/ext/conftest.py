"""A connection to a real server, with the session settings that rendering expects (rendering-1 to rendering-4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from tests.harness.database import Database

Connection = psycopg.Connection[tuple[Any, ...]]

SESSION = """
    set client_encoding = 'UTF8'; set datestyle = 'ISO'; set intervalstyle = 'postgres'; set bytea_output = 'hex';
    set timezone = 'UTC'; set lc_monetary = 'C'
"""


@pytest.fixture(scope="module")
def connection(database: Database) -> Iterator[Connection]:
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        connection.execute(SESSION)
        yield connection
