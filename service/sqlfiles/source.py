"""The files of SQL as a source of endpoints: routines from the folder and the server's descriptions, and diagnostics
about files that cannot be served.

If a file has become invalid, its last good version is served; a file that was never valid is left out, or stops the
start.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import psycopg

from rowcall.core.annotations.declaration import Draft
from rowcall.core.building.comments import read_comment
from rowcall.core.building.endpoint_builder import EndpointDefaults
from rowcall.core.catalogue.catalog import (
    VOID_TYPE,
    Catalog,
    Column,
    Parameter,
    ParameterMode,
    Routine,
    RoutineKind,
    TypeInfo,
    TypeKind,
    Volatility,
    names_response,
)
from rowcall.core.catalogue.source import Transport
from rowcall.core.config import Settings
from rowcall.core.config.sections.sql_files import SqlFileOptions
from rowcall.core.endpoint.capabilities import CommentsMode
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.sqlfile.commands import Effect, Suspects, effect, execution_plans, is_hidden, leaves_open
from rowcall.core.sqlfile.reading import (
    SqlFile,
    SqlFileError,
    asks_for_endpoint,
    excerpt,
    find_route,
    place,
    read_file,
)
from rowcall.core.sqlfile.source import FileResult, FileSource, FileStatement
from rowcall.core.sqlfile.statement_comments import StatementNotes
from rowcall.core.text.globs import has_wildcard, is_recursive
from rowcall.core.text.naming import default_path
from rowcall.service.discovery.catalogue import DEFAULT_SEARCH_PATH, load_types
from rowcall.service.discovery.files import FileText, find_files, read_text
from rowcall.service.discovery.installation import installed_version
from rowcall.service.discovery.trust import NO_TRUST, Trust
from rowcall.service.sqlfiles.describing import (
    Question,
    RefusedStatement,
    StatementDescription,
    describe,
    find_suspects,
    find_table_columns,
    find_types,
)
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_RECORD = 2249
"""Oid of the pseudo-type `record`."""
_LEFT_OPEN = "a transaction is begun and not ended, so nothing that is done in it stays; end it with commit"
_NO_STATEMENT = "the file has no statement, so no endpoint is made of it; write one, or remove the HTTP line"


@dataclass(frozen=True, slots=True)
class Naming:
    """How paths are made from names."""

    prefix: str | None
    kebab: bool


@dataclass(frozen=True, slots=True)
class _Known:
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
    """The files of one service, over all readings of the catalogue."""

    def __init__(self, options: SqlFileOptions, naming: Naming, search_path: str, trust: Trust = NO_TRUST) -> None:
        self._trust = trust
        self.options = options
        self._naming = naming
        self._search_path = search_path
        self._known: dict[str, _Known] = {}
        self._reported: dict[str, str] = {}
        self._suspects: dict[str, Suspects] = {}
        self._places: dict[str, tuple[int, Mapping[int, TypeInfo], int]] = {}
        """Version of the server, types of the files, and version of the schema `rowcall`, as last read."""
        self._not_exposed: tuple[Diagnostic, ...] = ()
        """Diagnostics about files without an annotation whose comment looks like one."""
        self._has_read = False

    async def read(
        self, home: str, place_of: Place, open_at: OpenAt, *, only_files: bool = False
    ) -> dict[str, Catalog]:
        """Read the folder, have each file described by its database, and return one catalogue for each database.

        A database is identified by its place. A file belongs to the place of the connection that it names, otherwise
        to `home`. place_of: returns the place of a connection. open_at: connects to a place. only_files: the databases
        have not changed, so only changed files are described again.

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
        parsed, errors = await asyncio.to_thread(_parse, fresh, whole=self.options.whole)
        by_place: dict[str, list[_Parsed]] = {home: []}
        for item in parsed:
            expected = place_of(item.connection) if item.connection else None
            by_place.setdefault(home if expected is None else expected, []).append(item)
        present = {text.path for text in texts}
        self._known = {path: known for path, known in self._known.items() if path in present}
        good: dict[str, _Known] = {}
        for where in dict.fromkeys((*by_place, *(known.place for known in self._known.values()))):
            files = by_place.get(where, [])
            try:
                async with await open_at(where) as connection:
                    good |= await self._describe(connection, where, files, errors)
                    here = [known.routine for known in (self._known | good).values() if known.place == where]
                    roots = sorted(_roots([routine for routine in here if routine is not None]))
                    types = await load_types(connection, roots, self._trust)
                    self._places[where] = (connection.info.server_version, types, await installed_version(connection))
            except psycopg.Error as error:
                if where == home:
                    raise
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
        """Return the routines by place; the diagnostics of files that are not served are in that of `home`."""
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
        overlooked = (*self._not_exposed, *empty)
        result: dict[str, list[Routine]] = {home: []}
        for _, known in sorted(self._known.items()):
            if known.routine is not None:
                result.setdefault(known.place, []).append(known.routine)
        catalogs: dict[str, Catalog] = {}
        for where, routines in result.items():
            version, types, installed = self._places[where]
            catalogs[where] = Catalog(
                version,
                types=types,
                files=tuple(routines),
                installed=installed,
                broken=broken if where == home else (),
                left_out=overlooked if where == home else (),
            )
        return catalogs

    def _asks_for_endpoint(self, text: str) -> bool:
        return asks_for_endpoint(text, self.options.keywords, whole=self.options.whole)

    async def _describe(
        self, connection: Connection, where: str, files: Sequence[_Parsed], errors: dict[str, str]
    ) -> dict[str, _Known]:
        """Return the valid files, and add messages about the others to `errors`."""
        if where not in self._suspects:
            self._suspects[where] = await find_suspects(connection)
        reading = _Reading(self.options, self._naming, self._search_path, self._suspects[where], where)
        good, wrong = await reading.read(connection, files)
        errors |= wrong
        return good

    def _read_folder(self) -> list[FileText]:
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
            values = [text for text in texts if self._is_wanted(text)]
            read = {text.path for text in values}
            others = [text for text in texts if text.path not in read and text.error is None]
            self._not_exposed = tuple(_bare_routes(others, whole=options.whole))
            return values
        return texts

    def _is_wanted(self, text: FileText) -> bool:
        # If nothing of a file can be read, it is reported as an error.
        unreadable = text.error is not None and not text.text
        return unreadable or self._asks_for_endpoint(text.text)

    def _report(self, errors: Mapping[str, str]) -> None:
        """Log each error once, until it changes."""
        for path, message in errors.items():
            suffix = "; its last good version is served" if path in self._known else ""
            if self._reported.get(path) != message:
                log.error("%s%s", message, suffix)
        self._reported = dict(errors)


def sql_file_source(
    settings: Settings, options: SqlFileOptions | None, defaults: EndpointDefaults, trust: Trust
) -> SqlFileSource | None:
    """Return the source of SQL files, or None if the configuration names no files. `defaults`: those of routines.
    trust: the owners whose types are used.
    """
    if options is None:
        return None
    schema = settings.text_or_none("ConnectionSettings:MetadataQuerySchema")
    naming = Naming(defaults.url_path_prefix, defaults.kebab_case_urls)
    return SqlFileSource(options, naming, schema or DEFAULT_SEARCH_PATH, trust)


def _bare_routes(texts: Iterable[FileText], *, whole: bool) -> Iterator[Diagnostic]:
    """Iterate over warnings about files whose comment names a method and a path without `HTTP`."""
    for text in texts:
        body = find_route(text.text, whole=whole)
        if body is not None:
            line, number = body
            message = f"line {number}: no endpoint is made of it, as HTTP is missing; write `HTTP {line}`"
            yield Diagnostic(text.path, line, message, left_out=1)


def _roots(routines: Sequence[Routine]) -> set[int]:
    oids = {oid for routine in routines for item in routine.parameters for oid in (item.type_oid, item.record)}
    for routine in routines:
        if isinstance(routine.source, FileSource):
            oids.update(column.type_oid for item in routine.source.statements for column in item.result.columns)
    return oids - {0}


@dataclass(frozen=True, slots=True)
class _Parsed:
    path: str
    file: SqlFile

    @property
    def connection(self) -> str | None:
        """Return the connection named by the annotation `connection`: the file is described and run there."""
        if "connection" not in self.file.comment.lower():
            return None
        draft = Draft(self.path, self.file.method, parameters=frozenset(self.file.parameters.names))
        read_comment(self.file.comment, draft)
        nothing: str | None = None
        return draft.get("connection", nothing)


def _parse(texts: Sequence[FileText], *, whole: bool) -> tuple[list[_Parsed], dict[str, str]]:
    """Return the files that can be parsed, and messages about the others."""
    parsed: list[_Parsed] = []
    errors: dict[str, str] = {}
    for text in texts:
        if text.error is not None:
            errors[text.path] = _message(text.path, text.text, text.error, text.line, None)
            continue
        try:
            parsed.append(_Parsed(text.path, read_file(text.text, whole=whole)))
        except SqlFileError as error:
            errors[text.path] = _message(text.path, text.text, str(error), error.line, error.column)
    return parsed, errors


class _Reading:
    """One reading of some files of one place."""

    def __init__(
        self, options: SqlFileOptions, naming: Naming, search_path: str, suspects: Suspects, place: str
    ) -> None:
        self._place = place
        self._suspects = suspects
        self._options = options
        self._naming = naming
        self._search_path = search_path
        self._errors: dict[str, str] = {}
        self._oids: dict[str, int] = {}
        self._types: Mapping[int, TypeInfo] = {}
        self._table_columns: Mapping[tuple[int, int], str] = {}

    async def read(self, connection: Connection, parsed: Sequence[_Parsed]) -> tuple[dict[str, _Known], dict[str, str]]:
        """Return the valid files, and the messages about the others."""
        if not parsed:
            return {}, {}
        self._oids = await find_types(connection, sorted(_type_names(parsed)), self._search_path)
        if self._oids:
            self._types = await load_types(connection, sorted(set(self._oids.values())))
        parsed = [item for item in parsed if self._returns_are_types(item)]
        questions = [(item, index) for item in parsed for index in self._undescribed(item.file)]
        answers = await describe(
            connection, [self._question(item.file, index) for item, index in questions], self._search_path
        )
        described: dict[tuple[str, int], StatementDescription] = {}
        for (item, index), answer in zip(questions, answers, strict=True):
            if isinstance(answer, StatementDescription):
                described[item.path, index] = answer
            else:
                self._errors.setdefault(item.path, _refusal(item, index, answer))
        oids = {oid for answer in described.values() for _, oid in answer.columns}
        if oids:
            self._types = {**self._types, **await load_types(connection, sorted(oids))}
        relations = {relation for answer in described.values() for relation, _ in answer.origins} - {0}
        if relations:
            self._table_columns = await find_table_columns(connection, sorted(relations))
        good = {
            item.path: _Known(item.file.text, self._routine(item, described), self._place)
            for item in parsed
            if item.path not in self._errors
        }
        return good, self._errors

    def _returns_are_types(self, parsed: _Parsed) -> bool:
        """Decide for each line that begins with `returns` whether it names a type, is prose, or is an error."""
        notes = parsed.file.notes
        for about in notes.statements:
            if about.returns is None:
                continue
            if about.returns == "void" or about.returns in self._oids:
                notes.claimed.add(about.returns_line)
            elif about.returns_certain:
                line, column = place(parsed.file.text, about.returns_at)
                message = f"returns: {about.returns!r} is no type"
                self._errors[parsed.path] = _message(parsed.path, parsed.file.text, message, line, column)
                return False
            else:
                about.returns = None
        return True

    def _undescribed(self, file: SqlFile) -> list[int]:
        """Return the indexes of the statements that the server must describe."""
        return [index for index, about in enumerate(file.notes.statements) if about.returns is None]

    def _question(self, file: SqlFile, index: int) -> Question:
        numbered = file.parameters.statements[index]
        return Question(numbered.text, self._type_oids(file, numbered.numbers))

    def _type_oids(self, file: SqlFile, numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._hinted(file, number) for number in numbers)

    def _hinted(self, file: SqlFile, number: int) -> int:
        """Return the type of a parameter; 0 if the server infers it. A composite is sent as text that the statement
        casts.
        """
        oid = self._declared_type(file, number)
        return 0 if self._is_composite(oid) else oid

    def _record(self, file: SqlFile, number: int) -> int:
        """Return the composite type that the comment declares for a parameter, else 0."""
        oid = self._declared_type(file, number)
        return oid if self._is_composite(oid) else 0

    def _declared_type(self, file: SqlFile, number: int) -> int:
        hint = file.notes.hints.get(number)
        readings = () if hint is None else hint.readings
        oid = next((self._oids[name] for name in readings if name in self._oids), 0)
        return oid if oid in self._types else 0

    def _is_composite(self, oid: int) -> bool:
        return oid != 0 and self._types[oid].kind is TypeKind.COMPOSITE

    def _routine(self, parsed: _Parsed, described: Mapping[tuple[str, int], StatementDescription]) -> Routine | None:
        file = parsed.file
        if not file.statements:
            return None
        effects = [effect(statement, self._suspects) for statement in file.statements]
        ways = execution_plans(file.statements, effects, wrapped=self._options.wrapped)
        results = self._results(parsed, described)
        statements = tuple(
            FileStatement(numbered.text, numbered.numbers, self._type_oids(file, numbered.numbers), way, result)
            for numbered, way, result in zip(file.parameters.statements, ways, results, strict=True)
        )
        name = PurePosixPath(parsed.path).stem
        reads = all(what is Effect.READ for what in effects)
        in_query = file.method in ("GET", "DELETE")
        source = FileSource(
            file=parsed.path,
            method=file.method,
            transport=Transport.QUERY if in_query else Transport.BODY,
            path=default_path("public", name, self._naming.prefix, self._naming.kebab),
            statements=statements,
            claimed=frozenset(file.notes.claimed),
            module=self._module(parsed.path),
            unnamed=self._options.unnamed,
            fingerprint=hashlib.sha256(file.text.encode()).hexdigest()[:16],
            warnings=(*file.notes.warnings, *((_LEFT_OPEN,) if leaves_open(effects) else ())),
        )
        columns = statements[0].result.columns
        return Routine(
            oid=0,
            kind=RoutineKind.FILE,
            schema="public",
            name=name,
            comment=file.comment,
            language="sql",
            strict=False,
            volatility=Volatility.STABLE if reads else Volatility.VOLATILE,
            returns_set=bool(columns),
            return_type_oid=_RECORD if columns else VOID_TYPE,
            return_type_name="record" if columns else "void",
            parameters=tuple(self._parameters(file)),
            columns=columns,
            source=source,
            sets_response=any(names_response(statement.text) for statement in source.statements),
        )

    def _parameters(self, file: SqlFile) -> list[Parameter]:
        parameters = []
        for number, name in enumerate(file.parameters.names):
            oid = self._hinted(file, number)
            type_name = self._types[oid].display if oid else "text"
            own = None if name.startswith("$") else name
            parameters.append(
                Parameter(
                    own,
                    oid,
                    type_name,
                    ParameterMode.IN,
                    has_default=False,
                    argument=number,
                    placeholder=own is not None,
                    record=self._record(file, number),
                )
            )
        for virtual in file.notes.virtual:
            oid = self._oids.get(virtual.type_name, 0)
            argument = len(parameters)
            parameters.append(
                Parameter(
                    virtual.name, oid, virtual.type_name, ParameterMode.IN, has_default=True, argument=argument,
                    virtual=True,
                )
            )  # fmt: skip
        return parameters

    def _results(self, parsed: _Parsed, described: Mapping[tuple[str, int], StatementDescription]) -> list[FileResult]:
        results = []
        several = len(parsed.file.statements) > 1
        visible = 0
        for index, (statement, about) in enumerate(
            zip(parsed.file.statements, parsed.file.notes.statements, strict=True)
        ):
            hidden = about.skip or (several and self._options.hide and is_hidden(statement))
            visible += not hidden
            key = None if hidden else about.name or f"{self._options.prefix}{visible}"
            results.append(self._result(about, key, described.get((parsed.path, index))))
        return results

    def _result(self, about: StatementNotes, key: str | None, described: StatementDescription | None) -> FileResult:
        if about.returns == "void":
            return FileResult(key, (), about.single, dropped=True)
        if about.returns is not None:
            info = self._types[self._oids[about.returns]]
            if info.kind is TypeKind.COMPOSITE and info.attributes:
                columns = tuple(Column(item.name, item.type_oid, item.type_name) for item in info.attributes)
                return FileResult(key, columns, about.single, declared=True)
            column = Column(about.returns, info.oid, info.display)
            return FileResult(key, (column,), about.single, first_only=True, declared=True)
        if described is None:
            return FileResult(key, (), about.single)
        columns = tuple(
            Column(
                name,
                oid,
                self._types[oid].display,
                origin=origin,
                table_column=self._table_columns.get(origin, ""),
            )
            for (name, oid), origin in zip(described.columns, described.origins, strict=True)
        )
        return FileResult(key, columns, about.single)

    def _module(self, path: str) -> str:
        """Return the first folder below that of the pattern, or that folder itself."""
        base = PurePosixPath(self._options.folder)
        inner = PurePosixPath(path)
        below = inner.relative_to(base).parts if inner.is_relative_to(base) else inner.parts
        return below[0] if len(below) > 1 else PurePosixPath(base).name


def _type_names(parsed: Sequence[_Parsed]) -> set[str]:
    names = {name for item in parsed for hint in item.file.notes.hints.values() for name in hint.readings}
    names |= {virtual.type_name for item in parsed for virtual in item.file.notes.virtual}
    returned = {about.returns for item in parsed for about in item.file.notes.statements if about.returns is not None}
    return names | (returned - {"void"})


def _refusal(parsed: _Parsed, index: int, refused: RefusedStatement) -> str:
    numbered = parsed.file.parameters.statements[index]
    offset = parsed.file.statements[index].start if refused.position is None else numbered.in_file(refused.position - 1)
    line, column = place(parsed.file.text, offset)
    message = f"error {refused.sqlstate}: {refused.message}"
    text = _message(parsed.path, parsed.file.text, message, line, column)
    for name, more in (("detail", refused.detail), ("hint", refused.hint)):
        text += f"\n{name}: {more}" if more else ""
    return text


def _message(path: str, text: str, message: str, line: int | None, column: int | None) -> str:
    """Return `sql/beds.sql:3:8: error 42703: …` with the line and a caret below."""
    if line is None:
        return f"{path}: {message}"
    if column is None:
        return f"{path}:{line}: {message}"
    return f"{path}:{line}:{column}: {message}\nat line {line}, column {column}:\n{excerpt(text, line, column)}"
