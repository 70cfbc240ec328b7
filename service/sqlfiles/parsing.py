"""The text of SQL files as parsed files, and messages that show a place in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.core.annotations.declaration import Draft
from rowcall.core.building.comments import read_comment
from rowcall.core.sqlfile.reading import SqlFile, SqlFileError, excerpt, read_file
from rowcall.service.discovery.files import FileText


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """A file that could be parsed."""

    path: str
    file: SqlFile

    @property
    def connection(self) -> str | None:
        """The connection named by the annotation `connection`, on which the file is described and run; None: the
        default one.
        """
        if "connection" not in self.file.comment.lower():
            return None
        draft = Draft(self.path, self.file.method, parameters=frozenset(self.file.parameters.names))
        read_comment(self.file.comment, draft)
        nothing: str | None = None
        return draft.get("connection", nothing)


def parse_files(texts: Sequence[FileText], *, whole: bool) -> tuple[list[ParsedFile], dict[str, str]]:
    """Return the files that can be parsed, and messages about the others by path. texts: those with an error count as
    files that cannot be parsed. whole: read annotations in all comments of a file, not only in those before its first
    statement.
    """
    parsed: list[ParsedFile] = []
    errors: dict[str, str] = {}
    for text in texts:
        if text.error is not None:
            errors[text.path] = message_at(text.path, text.text, text.error, text.line, None)
            continue
        try:
            parsed.append(ParsedFile(text.path, read_file(text.text, whole=whole)))
        except SqlFileError as error:
            errors[text.path] = message_at(text.path, text.text, str(error), error.line, error.column)
    return parsed, errors


def message_at(path: str, text: str, message: str, line: int | None, column: int | None) -> str:
    """Return `sql/beds.sql:3:8: error 42703: …` with the line of the file and a caret below. text: content of the file.
    line, column: from 1; None: unknown, and then the message has only what is known.
    """
    if line is None:
        return f"{path}: {message}"
    if column is None:
        return f"{path}:{line}: {message}"
    return f"{path}:{line}:{column}: {message}\nat line {line}, column {column}:\n{excerpt(text, line, column)}"
