"""The databases of one worker: the main one, and those that endpoints name, each with its own pools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rowcall.service.background import Background
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.database import Database
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.pools.pool import NoticeHandler

MOST_PIPELINED = 0.2
"""Largest part of the connections of a database with pools of its own that may be pipelined."""


@dataclass(frozen=True, slots=True)
class DatabaseAccess:
    """Address and options of one database besides the main one.

    name: of its connection, for the log and metrics. target: server, database and credentials. routable: endpoints may
    run there. source: its catalogue is read for routines.
    """

    name: str
    target: ConnectionTarget
    options: DatabaseOptions
    routable: bool = True
    source: bool = False


def _with_pipelined_share(options: DatabaseOptions) -> DatabaseOptions:
    """Return options whose pipelined connections are taken from the number of dedicated ones, so that the total stays
    that number.

    There are no pipelined connections if sharing is off, or if they would be more than the share `MOST_PIPELINED` of
    the total: slow requests would lack dedicated ones.
    """
    pools = options.pools
    if not pools.sharing or pools.pipelined_connections > MOST_PIPELINED * pools.dedicated_connections:
        return replace(options, pools=replace(pools, sharing=False))
    dedicated = pools.dedicated_connections - pools.pipelined_connections
    return replace(options, pools=replace(pools, dedicated_connections=dedicated))


class Databases:
    """The open databases: `main` always, others once an endpoint of the schema snapshot uses them."""

    def __init__(self, main: Database, others: Mapping[str, DatabaseAccess], replicas: Iterable[Database] = ()) -> None:
        """others: by case-folded name. replicas: of the main database. Must be created in the running event loop."""
        self.main = main
        main.replicas = tuple(replicas)
        self._access = others
        self._others: dict[str, Database] = {}
        self._starting = Background()
        self._on_notice: NoticeHandler | None = None
        self._identify_requests = False
        self._on_stale: Callable[[], None] | None = None

    def __iter__(self) -> Iterator[Database]:
        yield self.main
        yield from self.main.replicas
        yield from self._others.values()

    def named_all(self) -> Iterator[tuple[str, Database]]:
        """Yield the open databases, except replicas, with the names of their connections; the main one is `main`."""
        yield "main", self.main
        for key, database in self._others.items():
            yield self._access[key].name, database

    def set_notice_handler(self, handler: NoticeHandler, *, identify_requests: bool = False) -> None:
        """Set the function that is called with each notice, for the open databases and those that are opened later.
        identify_requests: as for `Database.set_notice_handler`.
        """
        self._on_notice = handler
        self._identify_requests = identify_requests
        for database in self:
            database.set_notice_handler(handler, identify_requests=identify_requests)

    def set_stale_handler(self, callback: Callable[[], None] | None) -> None:
        """Set the function that requests another reading of the catalogue (`Database.on_stale`), for the main database
        and for others whose catalogue is read, also those that are opened later. callback: None: it is removed.
        """
        self._on_stale = callback
        self.main.on_stale = callback
        for key, database in self._others.items():
            database.on_stale = callback if self._access[key].source else None

    def open(self, keys: Iterable[str]) -> Mapping[str, Database]:
        """Return the databases that endpoints may use, by these case-folded names; unknown names are left out. They
        connect in the background.
        """
        usable = (key for key in keys if key in self._access and self._access[key].routable)
        return {key: self.get_or_open(key) for key in usable}

    def with_own_pools(self, name: str, target: ConnectionTarget, options: DatabaseOptions) -> Database:
        """Return a database with pools of its own, for a part of the service whose sessions others must not share.
        name: also its key for `get_or_open`; if it is known already, `target` and `options` are ignored.

        Its pipelined connections are taken from the number of dedicated ones, so that this number is the maximum.
        """
        if name not in self._access:
            access = DatabaseAccess(name, target, _with_pipelined_share(options), routable=False)
            self._access = {**self._access, name: access}
        return self.get_or_open(name)

    def get_or_open(self, key: str) -> Database:
        """Return the database of a known case-folded name; if it is not open, it is opened, and connects in the
        background.
        """
        return self._others.get(key) or self._open(key)

    def _open(self, key: str) -> Database:
        access = self._access[key]
        database = self._others[key] = Database(access.target, access.options)
        if self._on_notice is not None:
            database.set_notice_handler(self._on_notice, identify_requests=self._identify_requests)
        database.on_stale = self._on_stale if access.source else None
        self._starting.start(database.start())
        return database

    async def close(self) -> None:
        self._starting.cancel()
        await asyncio.gather(*(database.close() for database in self))
