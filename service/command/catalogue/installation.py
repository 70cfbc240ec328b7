"""`--install`: create or update the schema `rowcall` in the main database; `--print` prints its SQL instead."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import psycopg

from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import connections, require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.database.connector import Connector
from rowcall.service.discovery.installation import read_installation
from rowcall.service.installation.script import install_sql, newest
from rowcall.service.options.from_settings import worker_options
from rowcall.service.startup_error import StartupError


def install(arguments: Arguments) -> int:
    """Install the schema and print its version; with `--print`, only print the SQL. Raises
    ConfigError, StartupError.
    """
    grantees = arguments.given.get("--grant-to", ())
    if arguments.has("--print"):
        print(install_sql(grantees), end="")
        return 0
    settings = load(arguments).settings
    require_readable(settings)
    with connections(settings, demo=arguments.has("--demo")) as opened:
        before = asyncio.run(_install(Connector(worker_options(settings, opened).target), grantees))
    if before == newest():
        print(f"the schema rowcall has version {before} already")
    else:
        print(f"the schema rowcall has version {newest()}{f', before {before}' if before else ''}")
    return 0


async def _install(connector: Connector, grantees: Sequence[str]) -> int:
    """Run the script of the schema `rowcall`. Return the version before, 0 for none. grantees: roles that may use the
    schema. Raises `StartupError`.
    """
    try:
        async with await connector.open_plain() as connection:
            await connection.set_autocommit(True)
            before = (await read_installation(connection)).version
            await connection.execute(install_sql(grantees).encode())
            return before
    except psycopg.Error as error:
        raise StartupError(f"the schema rowcall cannot be installed: {str(error).strip()}") from None
