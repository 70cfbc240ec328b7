"""Has the server describe parsed SQL files, and returns a routine for each valid one and a message for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from rowcall.core.catalogue.catalog import Routine
from rowcall.core.config.sections.sqlfiles import SqlFileOptions
from rowcall.core.sqlfile.commands import Suspects
from rowcall.core.sqlfile.reading import place
from rowcall.service.discovery.catalogue import load_types
from rowcall.service.sqlfiles.building import VOID, NamedTypes, Naming, RoutineBuilder, is_void
from rowcall.service.sqlfiles.describing import (
    Question,
    RefusedStatement,
    StatementDescription,
    describe,
    find_table_columns,
    find_types,
)
from rowcall.service.sqlfiles.parsing import ParsedFile, message_at

Connection = psycopg.AsyncConnection[Any]


class FileReader:
    """Reads files by the rules of one service (options, naming, search path).

    search_path: one schema. suspects: the functions and views of the database that may have side effects.
    """

    def __init__(self, options: SqlFileOptions, naming: Naming, search_path: str, suspects: Suspects) -> None:
        self._options = options
        self._naming = naming
        self._search_path = search_path
        self._suspects = suspects

    async def read(
        self, connection: Connection, parsed: Sequence[ParsedFile]
    ) -> tuple[dict[str, Routine | None], dict[str, str]]:
        """Return the routines of valid files by path (None: it has no statement), and the messages about the others.

        Raises `psycopg.Error`.
        """
        if not parsed:
            return {}, {}
        errors: dict[str, str] = {}
        oids = await find_types(connection, sorted(_type_names(parsed)), self._search_path)
        types = NamedTypes(oids, await load_types(connection, sorted(set(oids.values()))) if oids else {})
        valid: list[ParsedFile] = []
        for item in parsed:
            error = _resolve_returns(item, types)
            if error is None:
                valid.append(item)
            else:
                errors[item.path] = error
        described = await self._describe(connection, valid, types, errors)
        columns = {oid for answer in described.values() for _, oid in answer.columns}
        if columns:
            types = NamedTypes(oids, {**types.types, **await load_types(connection, sorted(columns))})
        relations = {relation for answer in described.values() for relation, _ in answer.origins} - {0}
        table_columns = await find_table_columns(connection, sorted(relations)) if relations else {}
        builder = RoutineBuilder(self._options, self._naming, types, described, table_columns, self._suspects)
        return {item.path: builder.build(item) for item in valid if item.path not in errors}, errors

    async def _describe(
        self, connection: Connection, files: Sequence[ParsedFile], types: NamedTypes, errors: dict[str, str]
    ) -> dict[tuple[str, int], StatementDescription]:
        """Return the descriptions of statements by path and index, without those whose type the comment declares. Add a
        message about each file with a refused statement to `errors`, by path.
        """
        places = [(item, index) for item in files for index in _undescribed_statements(item)]
        questions = [_question(item, index, types) for item, index in places]
        described: dict[tuple[str, int], StatementDescription] = {}
        answers = await describe(connection, questions, self._search_path)
        for (item, index), answer in zip(places, answers, strict=True):
            if isinstance(answer, StatementDescription):
                described[item.path, index] = answer
            else:
                errors.setdefault(item.path, _refusal(item, index, answer))
        return described


def _undescribed_statements(parsed: ParsedFile) -> Iterator[int]:
    """Return the indexes of the statements that the server must describe: those without a declared result type."""
    return (index for index, about in enumerate(parsed.file.notes.statements) if about.returns is None)


def _question(parsed: ParsedFile, index: int, types: NamedTypes) -> Question:
    """Return the statement of a file with this index, to be described."""
    numbered = parsed.file.parameters.statements[index]
    return Question(numbered.text, types.parameter_types(parsed.file, numbered.numbers))


def _resolve_returns(parsed: ParsedFile, types: NamedTypes) -> str | None:
    """Decide for each line that begins with `returns` whether it names a type or is prose, and set the declared types
    in the notes of the file: that of the last such line, where lines with an `@` take precedence. Return a message if
    the last line with an `@` names no type, else None. types: all that comments name.
    """
    notes = parsed.file.notes
    for about in notes.statements:
        naming = [item for item in about.returns_lines if types.is_result_type(item.type_name)]
        certain = [item for item in about.returns_lines if item.certain]
        if certain and certain[-1] not in naming:
            line, column = place(parsed.file.text, certain[-1].at)
            message = f"returns: {certain[-1].type_name!r} is no type"
            return message_at(parsed.path, parsed.file.text, message, line, column)
        notes.claimed.update(item.line for item in naming)
        for item in (certain or naming)[-1:]:
            about.returns = VOID if is_void(item.type_name) else item.type_name
    return None


def _type_names(parsed: Sequence[ParsedFile]) -> set[str]:
    """Return all words in the comments of files that may be names of types."""
    names = {name for item in parsed for hint in item.file.notes.hints.values() for name in hint.readings}
    names |= {name for item in parsed for virtual in item.file.notes.virtual for name in virtual.readings}
    lines = (line for item in parsed for about in item.file.notes.statements for line in about.returns_lines)
    return names | {line.type_name for line in lines if not is_void(line.type_name)}


def _refusal(parsed: ParsedFile, index: int, refused: RefusedStatement) -> str:
    """Return the message about a refused statement, with its place in the file. index: of the statement."""
    numbered = parsed.file.parameters.statements[index]
    offset = parsed.file.statements[index].start if refused.position is None else numbered.in_file(refused.position - 1)
    line, column = place(parsed.file.text, offset)
    message = f"error {refused.sqlstate}: {refused.message}"
    text = message_at(parsed.path, parsed.file.text, message, line, column)
    for name, more in (("detail", refused.detail), ("hint", refused.hint)):
        text += f"\n{name}: {more}" if more else ""
    return text
