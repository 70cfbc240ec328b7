"""Tables of responses: a temporary table for each request of a file, and the permanent debug table."""

from __future__ import annotations

import asyncio
import logging

import orjson
import psycopg
from psycopg import sql

from rowcall.core.testing.options import ResponseTable
from rowcall.core.testing.request import HttpBlock
from rowcall.service.database.connector import Connector
from rowcall.service.startup_error import StartupError
from rowcall.service.testing.calls import Reply
from rowcall.service.testing.session import Session

_OWN_COLUMNS = (
    "captured_at timestamptz default now()",
    "test_file text not null",
    "block text not null",
    "method text not null",
    "path text not null",
)
"""Columns of the debug table, beside those with the parts of responses."""
_COLUMNS_OF = """
select attname::text from pg_catalog.pg_attribute
where attrelid = to_regclass(%s) and attnum > 0 and not attisdropped
"""


class ResponseTables:
    """Creates the temporary tables in which the SQL tests of one file find the responses to its requests.

    blocks: number of requests in the file. With several, the name of the table contains the number of the request.
    """

    def __init__(self, table: ResponseTable, blocks: int) -> None:
        self._table = table
        self._blocks = blocks
        self._number = 0

    async def store(self, session: Session, block: HttpBlock, reply: Reply) -> str:
        """Store a response in a new temporary table and return its name, which is that of the request (`block.table`)
        or of the configuration. Raises `psycopg.Error`, for example if the table exists already or the transaction is
        aborted."""
        self._number += 1
        name = block.table or self._name()
        columns = self._table.columns
        definitions = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL(type_name)) for _, column, type_name in columns
        )
        values = sql.SQL(", ").join(sql.Literal(_value(reply, kind)) for kind, _, _ in columns)
        # In one round trip, because creating a table already costs some rows of the catalogue.
        await session.command(
            sql.SQL("create temp table {table} ({made}); insert into pg_temp.{table} values ({values})").format(
                table=sql.Identifier(name), made=definitions, values=values
            )
        )
        return name

    def _name(self) -> str:
        """Return the table name that the configuration determines for the current request; with several requests in the
        file, it contains the number of the request."""
        if self._blocks == 1:
            return self._table.name
        return self._table.pattern.replace("{n}", str(self._number))


def _value(reply: Reply, kind: str) -> str | int | bool | None:
    """Return the part of a response for a column of this kind (`Status`, `IsSuccess`, `Body`, `ContentType`; headers as
    JSON for any other). Without an endpoint, all but `Status` and `IsSuccess` are None.
    """
    if kind == "Status":
        return reply.status
    if kind == "IsSuccess":
        return 200 <= reply.status < 300
    if not reply.found:
        return None
    if kind == "Body":
        return None if reply.body is None else reply.body.replace("\0", "\ufffd")
    if kind == "ContentType":
        return reply.header("content-type")
    values: dict[str, list[str]] = {}
    for name, text in reply.headers:
        values.setdefault(name, []).append(text)
    return orjson.dumps({name: ", ".join(texts) for name, texts in values.items()}).decode()


class DebugTable:
    """The table `ResponseTempTable:DebugTable`, in which the responses of a run stay for inspection. connector: of its
    database. channel: name of the log channel.
    """

    def __init__(self, table: ResponseTable, connector: Connector, channel: str) -> None:
        self._columns = table.columns
        self._name = sql.Identifier(*(table.debug or "").split("."))
        self._connector = connector
        self._log = logging.getLogger(channel)
        self._waiting: asyncio.Queue[tuple[str, str, HttpBlock, Reply] | None] = asyncio.Queue()
        self._writing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Replace the table of an earlier run, and start to write in the background. Raises `psycopg.Error`, and
        `StartupError` if there is another table with this name.
        """
        connection = await self._connector.open_plain()
        definitions = [
            sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL(kind)) for _, column, kind in self._columns
        ]
        columns = sql.SQL(f"{', '.join(_OWN_COLUMNS)}, ") + sql.SQL(", ").join(definitions)
        try:
            await self._check(connection)
            await connection.execute(sql.SQL("drop table if exists {}").format(self._name))
            await connection.execute(sql.SQL("create table {} ({})").format(self._name, columns))
        except (psycopg.Error, StartupError):
            await connection.close()
            raise
        self._writing = asyncio.ensure_future(self._write(connection))

    async def _check(self, connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
        """Raise StartupError if there is a table with the name that no run has made, which must not be dropped."""
        name = self._name.as_string(connection)
        rows = await (await connection.execute(_COLUMNS_OF, (name,))).fetchall()
        own = {column.partition(" ")[0] for column in _OWN_COLUMNS}
        if rows and not own <= {row[0] for row in rows}:
            raise StartupError("there is such a table, which no run of tests has made; it would be dropped")

    def add(self, file: str, table: str, block: HttpBlock, reply: Reply) -> None:
        """Write a response in the background. file: path of the test file. table: name of the temporary table with the
        response.
        """
        self._waiting.put_nowait((file, table, block, reply))

    async def finish(self) -> None:
        """Wait until all responses are written, and close the connection."""
        self._waiting.put_nowait(None)
        if self._writing is not None:
            await self._writing

    async def _write(self, connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
        """Write responses until `finish`, and close the connection. Errors are logged."""
        async with connection:
            while (entry := await self._waiting.get()) is not None:
                file, table, block, reply = entry
                names = ("test_file", "block", "method", "path", *(column for _, column, _ in self._columns))
                texts = (file, table, block.method, block.target)
                values = [*texts, *(_value(reply, kind) for kind, _, _ in self._columns)]
                try:
                    await connection.execute(
                        sql.SQL("insert into {} ({}) values ({})").format(
                            self._name,
                            sql.SQL(", ").join(map(sql.Identifier, names)),
                            sql.SQL(", ").join(map(sql.Literal, values)),
                        )
                    )
                except psycopg.Error as error:
                    self._log.warning("the debug table cannot be written: %s", str(error).strip())
