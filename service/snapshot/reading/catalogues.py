"""Reads the catalogues and dependency graphs of databases, and after the first time only what has changed."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from rowcall.core.catalogue.catalog import Catalog
from rowcall.core.sqlfile.session_effects import DependencyGraph, Key
from rowcall.service.discovery.catalogue import DiscoveredCatalogue, ObjectSelection, discover_all, discover_changes
from rowcall.service.discovery.fingerprint import Fingerprint, catalogue_fingerprint
from rowcall.service.discovery.queries import GROUPS
from rowcall.service.discovery.session_effects import read_changed_functions, read_dependency_graph
from rowcall.service.snapshot.reading.places import Places

log = logging.getLogger("rowcall")

MOST_GROUPS = GROUPS // 8
"""Most groups of changed functions that are read separately; with more, everything is read again."""
MOST_READINGS = 5
"""Attempts to read a catalogue that changes while it is read."""


@dataclass(frozen=True, slots=True)
class _Database:
    """The result of reading a database. fingerprint: computed before the reading. found: the catalogue.
    dependency_graph: empty if graphs are not read.
    """

    fingerprint: Fingerprint
    found: DiscoveredCatalogue
    dependency_graph: DependencyGraph


class Catalogues:
    """The catalogues of the databases from which routines are read, over all readings.

    selection: which objects are read. schema: the search path for queries of the catalogue; None: none is configured.
    graphs: dependency graphs are read too. They are large in a large schema, and needed only if there can be endpoints.
    """

    def __init__(self, places: Places, selection: ObjectSelection, schema: str | None, *, graphs: bool) -> None:
        self._places = places
        self._selection = selection
        self._schema = schema
        self._graphs = graphs
        self._databases: dict[str, _Database] = {}
        """The last readings, by place."""
        self._seen: dict[str, Fingerprint] = {}
        """Fingerprints that were computed since then, for use by the next reading."""
        self.dependency_graphs: dict[str, DependencyGraph] = {}
        """By place; those of the sources are read together with the catalogues."""
        self.affected: dict[str, frozenset[Key] | None] = {}
        """By place, the objects whose session effects may have changed since the last reading; None: any object."""

    def __getitem__(self, place: str) -> Catalog:
        """Return the catalogue of the last reading at a place."""
        return self._databases[place].found.catalog

    def forget(self) -> None:
        """Make the next reading read everything."""
        self._databases, self._seen = {}, {}

    def forget_seen(self) -> None:
        """Make the next reading compute its fingerprints, instead of using those of `has_changed`."""
        self._seen = {}

    async def has_changed(self) -> bool:
        """Return whether a catalogue has changed since the last reading. The next reading uses the new fingerprint.
        Raises `psycopg.Error`.
        """
        for place in self._places.sources:
            async with await self._places.connector(place).open_plain() as connection:
                fingerprint = await catalogue_fingerprint(connection)
            database = self._databases.get(place)
            if database is None or fingerprint != database.fingerprint:
                self._seen[place] = fingerprint
                return True
        return False

    async def read(self, *, only_files: bool) -> None:
        """Read all sources. only_files: the caller reads only SQL files again, so the catalogues of the last reading
        stay in use, if there is one. Raises `psycopg.Error`.
        """
        if only_files and self._databases.keys() == set(self._places.sources):
            self.affected = dict.fromkeys(self._databases, frozenset())
        else:
            self.dependency_graphs, self.affected = {}, {}
            for place in self._places.sources:
                await self._discover(place)

    async def add_dependency_graph(self, place: str, connection: psycopg.AsyncConnection[Any]) -> None:
        """Read the dependency graph of a database from which no routines are read, once for each reading. connection:
        to the database at this place. Raises `psycopg.Error`."""
        if place not in self.dependency_graphs:
            self.dependency_graphs[place] = await read_dependency_graph(connection)

    async def _discover(self, place: str) -> None:
        """Read catalogue and dependency graph of a place; if it changes meanwhile, again, at most `MOST_READINGS`
        times. Raises `psycopg.Error`.
        """
        previous = self._databases.pop(place, None)
        async with await self._places.connector(place).open_plain() as connection:
            for attempt in range(1, MOST_READINGS + 1):
                database = await self._read_in_one_snapshot(place, connection, previous)
                # Functions such as has_function_privilege() look objects up in their present state, not in that of
                # the snapshot, and return NULL for a dropped object. So changes during the reading are read again.
                if attempt == MOST_READINGS or await catalogue_fingerprint(connection) == database.fingerprint:
                    break
                log.debug("the catalogue changed while it was read (attempt %d)", attempt)
        self._databases[place] = database
        self.dependency_graphs[place] = database.dependency_graph

    async def _read_in_one_snapshot(
        self, place: str, connection: psycopg.AsyncConnection[Any], known: _Database | None
    ) -> _Database:
        """Read catalogue and dependency graph in one REPEATABLE READ transaction, and set `affected` of the place. The
        fingerprint is that of the last `has_changed` if there is one; otherwise, it is computed in the transaction.

        known: the result of the previous reading, of which only the changes are read if possible; None: everything is
        read.
        """
        await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        async with connection.transaction():
            # A change of the catalogue by a later statement is found by the next poll.
            fingerprint = self._seen.pop(place, None) or await catalogue_fingerprint(connection)
            database = None if known is None else await self._changes(connection, place, known, fingerprint)
            if database is None:
                if not self._graphs:
                    discovered = await discover_all(connection, self._selection, self._schema)
                    dependency_graph = DependencyGraph()
                elif known is None:
                    discovered, dependency_graph = await self._at_once(place, connection)
                else:
                    discovered = await discover_all(connection, self._selection, self._schema)
                    dependency_graph = await read_dependency_graph(connection)
                    dependency_graph.remember(known.dependency_graph)
                database = _Database(fingerprint, discovered, dependency_graph)
                self.affected[place] = None
        return database

    async def _at_once(
        self, place: str, connection: psycopg.AsyncConnection[Any]
    ) -> tuple[DiscoveredCatalogue, DependencyGraph]:
        """Read catalogue and dependency graph at the start over two connections, in the same exported snapshot.

        So two processors of the server work at once, and this process parses one result while the other is computed.
        """
        exported = await (await connection.execute("select pg_catalog.pg_export_snapshot()")).fetchone()
        assert exported is not None  # noqa: S101 (a function call returns one row)
        async with await self._places.connector(place).open_plain() as other:
            dependency_graph = asyncio.ensure_future(_read_graph_in(other, str(exported[0])))
            try:
                return await discover_all(connection, self._selection, self._schema), await dependency_graph
            finally:
                dependency_graph.cancel()
                # If the server is lost, both fail; one of the two errors suffices.
                await asyncio.gather(dependency_graph, return_exceptions=True)

    async def _changes(
        self,
        connection: psycopg.AsyncConnection[Any],
        place: str,
        known: _Database,
        fingerprint: Fingerprint,
    ) -> _Database | None:
        """Read only what has changed, set `affected` of the place, and return the result. If everything has to be read,
        return None and set nothing. known: the result of the previous reading. fingerprint: the present one.
        """
        groups = fingerprint.changed_groups(known.fingerprint)
        # Names are sorted here as on the server, which requires the encoding.
        if groups is None or len(groups) > MOST_GROUPS or connection.info.encoding != "utf-8":
            return None
        if not groups:
            self.affected[place] = frozenset()
            return known
        discovered = await discover_changes(connection, self._selection, self._schema, known.found, groups)
        if discovered is not None and not self._graphs:
            self.affected[place] = None
            return _Database(fingerprint, discovered, known.dependency_graph)
        changed = (
            None if discovered is None else await read_changed_functions(connection, known.dependency_graph, groups)
        )
        if discovered is None or changed is None:
            return None
        self.affected[place] = changed.affected
        return _Database(fingerprint, discovered, changed.dependency_graph)


async def _read_graph_in(connection: psycopg.AsyncConnection[Any], snapshot: str) -> DependencyGraph:
    """Run `read_dependency_graph` in a snapshot of the database that another session has exported. snapshot: its id."""
    await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
    async with connection.transaction():
        await connection.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(snapshot)))
        return await read_dependency_graph(connection)
