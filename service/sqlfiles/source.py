"""The folder of SQL files as a source of endpoints: which files are read again, which version of each is served, and
diagnostics about files that cannot be served. `sqlfiles.reading` makes the routines.

If a file has become invalid, its last good version is served; a file that was never valid is left out, or stops the
start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from rowcall.core.building.endpoint_builder import EndpointDefaults
from rowcall.core.catalogue.catalog import Catalog, Routine, TypeInfo
from rowcall.core.catalogue.installation import Installation
from rowcall.core.config import Settings
from rowcall.core.config.sections.connections import ConnectionSettings
from rowcall.core.config.sections.sqlfiles import SqlFileOptions
from rowcall.core.endpoint.capabilities import CommentsMode
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.sqlfile.commands import Suspects
from rowcall.core.sqlfile.reading import asks_for_endpoint, find_route
from rowcall.core.sqlfile.source import FileSource
from rowcall.core.text.globs import has_wildcard, is_recursive
from rowcall.service.discovery.catalogue import DEFAULT_SEARCH_PATH, load_types
from rowcall.service.discovery.files import FileText, find_files, read_text
from rowcall.service.discovery.installation import read_installation
from rowcall.service.discovery.trust import NO_TRUST, Trust
from rowcall.service.sqlfiles.building import Naming
from rowcall.service.sqlfiles.describing import find_suspects
from rowcall.service.sqlfiles.parsing import ParsedFile, parse_files
from rowcall.service.sqlfiles.reading import FileReader
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_NO_STATEMENT = "the file has no statement, so no endpoint is made of it; write one, or remove the HTTP line"


@dataclass(frozen=True, slots=True)
class _ValidFile:
    """The last good version of a file."""

    text: str
    routine: Routine | None
    """None: it has no statement."""
    place: str
    """The place of the database that described it."""


Connection = psycopg.AsyncConnection[Any]
OpenAt = Callable[[str], Awaitable[Connection]]
"""Opens a connection to a place."""
Place = Callable[[str], str | None]
"""Returns the place (database) of a connection name, or None if endpoints cannot run on it."""


class SqlFileSource:
    """The files of one service, over all readings of the catalogue. search_path: one schema, in which statements find
    their objects. trust: the owners whose comments of types are read.
    """

    def __init__(self, options: SqlFileOptions, naming: Naming, search_path: str, trust: Trust = NO_TRUST) -> None:
        self._trust = trust
        self.options = options
        self._naming = naming
        self._search_path = search_path
        self._known: dict[str, _ValidFile] = {}
        """By path."""
        self._reported: dict[str, str] = {}
        """Messages of the last reading, by path."""
        self._suspects: dict[str, Suspects] = {}
        """By place."""
        self._places: dict[str, tuple[int, Mapping[int, TypeInfo], Installation]] = {}
        """By place: version of the server, types of the files, and state of the schema `rowcall`, as last read."""
        self._not_exposed: tuple[Diagnostic, ...] = ()
        """Diagnostics about files without an annotation whose comment looks like one."""
        self._has_read = False
        self.complete = True
        """Whether the last reading could read all databases that files name."""

    async def read(
        self, home: str, place_of: Place, open_at: OpenAt, *, only_files: bool = False
    ) -> dict[str, Catalog]:
        """Read the folder, have each file described by its database, and return one catalogue for each database.

        A database is identified by its place. A file belongs to the place of the connection that it names. If it names
        none, or one on which endpoints cannot run, or annotations are ignored, it belongs to `home`. place_of: returns
        the place of a connection; None: endpoints cannot run on it. open_at: connects to a place. only_files: the
        databases have not changed, so only changed files are described again.

        Raises:
            psycopg.Error: `home` cannot be read. An error of another place is reported for the files that name it.
            StartupError: at the first reading, if invalid files must stop the start.
        """
        texts = await asyncio.to_thread(self._read_folder)
        if not only_files:
            fresh = texts
            self._suspects = {}
        else:
            fresh = [text for text in texts if (known := self._known.get(text.path)) is None or known.text != text.text]
        parsed, errors = await asyncio.to_thread(parse_files, fresh, whole=self.options.whole)
        by_place: dict[str, list[ParsedFile]] = {home: []}
        ignores_comments = self.options.comments_mode is CommentsMode.IGNORE
        for item in parsed:
            name = None if ignores_comments else item.connection
            expected = place_of(name) if name else None
            by_place.setdefault(home if expected is None else expected, []).append(item)
        present = {text.path for text in texts}
        self._known = {path: known for path, known in self._known.items() if path in present}
        good: dict[str, _ValidFile] = {}
        self.complete = True
        for where in dict.fromkeys((*by_place, *(known.place for known in self._known.values()))):
            files = by_place.get(where, [])
            try:
                async with await open_at(where) as connection:
                    described = await self._describe(connection, where, files, errors)
                    valid = self._known | good | described
                    here = [known.routine for known in valid.values() if known.place == where]
                    roots = sorted(_roots([routine for routine in here if routine is not None]))
                    types = await load_types(connection, roots, self._trust)
                    self._places[where] = (connection.info.server_version, types, await read_installation(connection))
                # Not before: the files need the types of the same reading.
                good |= described
            except psycopg.Error as error:
                if where == home:
                    raise
                self.complete = False
                for item in files:
                    errors[item.path] = f"{item.path}: connection {where}, where it is described: {str(error).strip()}"
        if errors and self.options.strict and not self._has_read:
            log.critical("Service:SqlFileSource:ErrorMode is Exit; with Skip, broken files are left out")
            count = f"{len(errors)} of the files in {self.options.pattern} cannot be served:"
            raise StartupError("\n".join((count, *errors.values())))
        self._report(errors)
        self._has_read = True
        self._known |= good
        return self._catalogs(home, errors)

    def _catalogs(self, home: str, errors: Mapping[str, str]) -> dict[str, Catalog]:
        """Return the catalogues by place, with the routines of the last good versions of all files. The diagnostics of
        files that are not served are in that of `home`. errors: messages about invalid files, by path.
        """
        broken = tuple(
            Diagnostic(path, None, message.removeprefix(f"{path}:").strip(), left_out=1)
            for path, message in errors.items()
            if path not in self._known
        )
        empty = (
            Diagnostic(path, None, _NO_STATEMENT, left_out=1)
            for path, known in sorted(self._known.items())
            if known.routine is None and self._asks_for_endpoint(known.text)
        )
        ignored = (*self._not_exposed, *empty)
        result: dict[str, list[Routine]] = {home: []}
        for _, known in sorted(self._known.items()):
            if known.routine is not None:
                result.setdefault(known.place, []).append(known.routine)
        catalogs: dict[str, Catalog] = {}
        for where, routines in result.items():
            version, types, installation = self._places[where]
            catalogs[where] = Catalog(
                version,
                types=types,
                files=tuple(routines),
                installation=installation,
                broken=broken if where == home else (),
                left_out=ignored if where == home else (),
            )
        return catalogs

    def _asks_for_endpoint(self, text: str) -> bool:
        """Return whether the comment of the text has an annotation that makes the file an endpoint."""
        return asks_for_endpoint(text, self.options.keywords, whole=self.options.whole)

    async def _describe(
        self, connection: Connection, where: str, files: Sequence[ParsedFile], errors: dict[str, str]
    ) -> dict[str, _ValidFile]:
        """Have files described by the database at the place `where`. Return the valid ones by path, and add messages
        about the others to `errors`, by path. Raises `psycopg.Error`.
        """
        if where not in self._suspects:
            self._suspects[where] = await find_suspects(connection)
        reader = FileReader(self.options, self._naming, self._search_path, self._suspects[where])
        routines, wrong = await reader.read(connection, files)
        errors |= wrong
        return {
            item.path: _ValidFile(item.file.text, routines[item.path], where) for item in files if item.path in routines
        }

    def _read_folder(self) -> list[FileText]:
        """Return the files that have to be served or reported, and set the diagnostics about others. A folder without
        any file is logged.
        """
        options = self.options
        texts = [
            text
            for path in find_files(options.pattern, options.skip)
            if (text := read_text(path, options.folder)) is not None
        ]
        if not texts:
            flat = has_wildcard(options.pattern) and not is_recursive(options.pattern)
            hint = "; without ** no folder below is looked into" if flat else ""
            log.warning("no file fits the pattern %s of Service:SqlFileSource:FilePattern%s", options.pattern, hint)
        if options.comments_mode is CommentsMode.ONLY_ANNOTATED:
            values = [text for text in texts if self._has_to_be_served(text)]
            read = {text.path for text in values}
            others = [text for text in texts if text.path not in read and text.error is None]
            self._not_exposed = tuple(_bare_routes(others, whole=options.whole))
            return values
        return texts

    def _has_to_be_served(self, text: FileText) -> bool:
        """Return whether a file has to become an endpoint, so that a fault of it is an error: its comment asks for an
        endpoint, or nothing of the file can be read.
        """
        # If nothing of a file can be read, it is reported as an error.
        unreadable = text.error is not None and not text.text
        return unreadable or self._asks_for_endpoint(text.text)

    def _report(self, errors: Mapping[str, str]) -> None:
        """Log each error once, until it changes. errors: by path."""
        for path, message in errors.items():
            suffix = "; its last good version is served" if path in self._known else ""
            if self._reported.get(path) != message:
                log.error("%s%s", message, suffix)
        self._reported = dict(errors)


def sql_file_source(
    settings: Settings, options: SqlFileOptions | None, defaults: EndpointDefaults, trust: Trust
) -> SqlFileSource | None:
    """Return the source of SQL files, or None if the configuration names no files (`options` is None). defaults: those
    of routines. trust: as for `SqlFileSource`.
    """
    if options is None:
        return None
    schema = settings.read(ConnectionSettings).metadata_schema
    naming = Naming(defaults.service.url_path_prefix, defaults.service.kebab_case_urls)
    return SqlFileSource(options, naming, schema or DEFAULT_SEARCH_PATH, trust)


def _bare_routes(texts: Iterable[FileText], *, whole: bool) -> Iterator[Diagnostic]:
    """Yield a warning about each file whose comment names a method and a path without `HTTP`. whole: as for
    `parse_files`.
    """
    for text in texts:
        body = find_route(text.text, whole=whole)
        if body is not None:
            line, number = body
            message = f"line {number}: no endpoint is made of it, as HTTP is missing; write `HTTP {line}`"
            yield Diagnostic(text.path, line, message, left_out=1)


def _roots(routines: Sequence[Routine]) -> set[int]:
    """Return the oids of the types of all parameters and result columns."""
    oids = {oid for routine in routines for item in routine.parameters for oid in (item.type_oid, item.record)}
    for routine in routines:
        if isinstance(routine.source, FileSource):
            oids.update(column.type_oid for item in routine.source.statements for column in item.result.columns)
    return oids - {0}
