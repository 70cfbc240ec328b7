"""What settings `pgrst.…` of the login role mean for the configuration."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import psycopg
import pytest

from rowcall.core.postgrest.options import InvalidOptionError, options_of
from rowcall.service.options.server.postgrest import secret_of as secret_text
from rowcall.service.postgrest.configuration import read_database_configuration
from tests.harness.database import Database


def configured(database: Database, options: dict[str, str], **settings: str) -> dict[str, str]:
    """Set `pgrst.…` for the role, and return the configuration that results. options: of the file."""
    for name, text in settings.items():
        database.execute(f"alter role current_user in database {database.name} set pgrst.{name} = '{text}'")

    async def read() -> dict[str, str]:
        async with await psycopg.AsyncConnection.connect(database.conninfo) as connection:
            return await read_database_configuration(connection, options_of(options))

    return asyncio.run(read())


def secret_of(database: Database, text: str) -> str:
    """Set `pgrst.jwt_secret` for the role, and return the secret that results."""
    return configured(database, {}, jwt_secret=text)["jwt-secret"]


def test_a_secret_file_named_by_the_database_is_read(own_database: Database, tmp_path: Path) -> None:
    """Everyone can guess the path, and could sign tokens with it."""
    file = tmp_path / "a-secret-of-more-than-32-characters"
    file.write_text("the content of the file\n")
    assert secret_of(own_database, f"@{file}") == "the content of the file"
    assert secret_of(own_database, "a secret without a file") == "a secret without a file"
    with pytest.raises(InvalidOptionError, match="jwt-secret: the file /nowhere can't be read"):
        secret_of(own_database, "@/nowhere")


def test_a_secret_is_read_once_from_a_pipe_and_again_from_a_file(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("of the pipe\n",))
    writer.start()
    assert [secret_text(f"@{pipe}"), secret_text(f"@{pipe}")] == ["of the pipe"] * 2
    writer.join()
    for content in ("first", "second"):
        file.write_text(content)
        assert secret_text(f"@{file}") == content


def test_keys_that_the_database_may_set(own_database: Database) -> None:
    uri = "https://example.com/api"
    kept = {"db_tx_end": "rollback", "openapi_server_proxy_uri": uri, "db_schemas": "a, b"}
    ignored = {
        "db_channel": "x",
        "db_channel_enabled": "false",
        "db_config": "false",
        "admin_server_port": "1",
        "no": "x",
    }
    assert configured(own_database, {}, **kept, **ignored) == {
        "db-tx-end": "rollback",
        "openapi-server-proxy-uri": uri,
        "db-schemas": "a, b",
    }
    assert configured(own_database, {"db-config": "false"}) == {}


def test_settings_of_the_role_have_precedence_over_those_of_the_function(own_database: Database) -> None:
    own_database.execute(
        """
        create function pre_config() returns void language sql as $$
          select set_config('pgrst.db_schemas', 'function', true), set_config('pgrst.db_anon_role', 'function', true),
                 set_config('pgrst.db_channel', 'function', true) $$
        """
    )
    expected = {"db-schemas": "role", "db-anon-role": "function"}
    assert configured(own_database, {"db-pre-config": "public.pre_config"}, db_schemas="role") == expected
    expected["db-pre-config"] = "pre_config"
    assert configured(own_database, {}, db_pre_config="pre_config") == expected
