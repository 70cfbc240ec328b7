"""What settings `pgrst.…` of the login role mean for the configuration."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from rowcall.core.postgrest.options import InvalidOptionError, options_of
from rowcall.service.postgrest.configuration import read_database_configuration
from tests.harness.database import Database


def secret_of(database: Database, text: str) -> str:
    """Set `pgrst.jwt_secret` for the role, and return the secret that results."""
    database.execute(f"alter role current_user in database {database.name} set pgrst.jwt_secret = '{text}'")

    async def read() -> dict[str, str]:
        async with await psycopg.AsyncConnection.connect(database.conninfo) as connection:
            return await read_database_configuration(connection, options_of({}))

    return asyncio.run(read())["jwt-secret"]


def test_a_secret_file_named_by_the_database_is_read(own_database: Database, tmp_path: Path) -> None:
    """Everyone can guess the path, and could sign tokens with it."""
    file = tmp_path / "a-secret-of-more-than-32-characters"
    file.write_text("the content of the file\n")
    assert secret_of(own_database, f"@{file}") == "the content of the file"
    assert secret_of(own_database, "a secret without a file") == "a secret without a file"
    with pytest.raises(InvalidOptionError, match="jwt-secret: the file /nowhere can't be read"):
        secret_of(own_database, "@/nowhere")
