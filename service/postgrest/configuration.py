"""Configuration in the database: settings `pgrst.…` of the login role, and what the function `db-pre-config` sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql

from rowcall.core.postgrest.configuration.keys import APP_SETTINGS, INTERFACE_KEYS
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.service.options.server.postgrest import secret_of

_PREFIX = "pgrst."
_ROLE_SETTINGS = """
select setting from (
  select unnest(setconfig) as setting, setdatabase from pg_catalog.pg_db_role_setting
  where setrole = (select oid from pg_catalog.pg_roles where rolname = current_user)
    and setdatabase in (0, (select oid from pg_catalog.pg_database where datname = current_database()))
) settings where setting like 'pgrst.%' order by setdatabase
"""


async def read_database_configuration(
    connection: psycopg.AsyncConnection[Any], options: PostgRestOptions
) -> dict[str, str]:
    """Return the values that the database sets, as texts by key of PostgREST (`db-schemas`), without keys that it may
    not set. Empty if `db-config` is off.

    Settings of the login role for this database take precedence over its settings for all databases, and these over
    what the function sets. A file that `jwt-secret` names is read, as its path is no secret. Raises `psycopg.Error`,
    and `InvalidOptionError` for a file that cannot be read.
    """
    if not options.database_configuration:
        return {}
    cursor = await connection.execute(_ROLE_SETTINGS)
    texts = dict(setting.removeprefix(_PREFIX).partition("=")[::2] for (setting,) in await cursor.fetchall())
    function = texts.get("db_pre_config") or options.pre_config
    if function is not None:
        texts = await _set_by_function(connection, function) | texts
    result = by_key(texts)
    if "jwt-secret" in result:
        result["jwt-secret"] = secret_of(result["jwt-secret"])
    return result


async def _set_by_function(connection: psycopg.AsyncConnection[Any], name: str) -> dict[str, str]:
    """Run the function `db-pre-config`, and return the settings `pgrst.…` that it has left non-empty, by name without
    prefix (`db_schemas`). Only keys that the database may set are read, and no settings of the application.

    name: of the function, with its schema if it contains a dot. Raises `psycopg.Error`.
    """
    names = [key.postgrest.replace("-", "_") for key in INTERFACE_KEYS if key.in_database]
    async with connection.transaction():
        await connection.execute(sql.SQL("select {}()").format(sql.Identifier(*name.split(".", 1))))
        cursor = await connection.execute(
            "select name, current_setting('pgrst.' || name, true) from unnest(%s::text[]) name", (names,)
        )
        rows = await cursor.fetchall()
    return {setting: value for setting, value in rows if value is not None and value != ""}


def by_key(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts of settings by key of PostgREST. texts: by name of the setting, where `db_schemas` is for the key
    `db-schemas`. Settings of the application (`app.settings.…`) are kept; unknown keys and those that the database may
    not set are left out.
    """
    allowed = {key.postgrest for key in INTERFACE_KEYS if key.in_database}
    result: dict[str, str] = {}
    for name, text in texts.items():
        key = name.replace("_", "-")
        if key in allowed:
            result[key] = text
        elif name.startswith("app.settings.") or name.startswith("app_settings_"):
            result[APP_SETTINGS + name[len("app.settings.") :]] = text
    return result
