"""Reads the text of a `.sql` file: everything that can be derived without a database."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rowcall.core.annotations.declaration import Line
from rowcall.core.annotations.rows.exposure import METHODS, is_route
from rowcall.core.sqlfile.commands import automatic_method, copies_to_client
from rowcall.core.sqlfile.placeholders import Parameters, PlaceholderError, number
from rowcall.core.sqlfile.splitting import RawStatement, comment_lines, split
from rowcall.core.sqlfile.statement_comments import Notes, read_notes

_MAY_BE_ROUTE = re.compile(rf"\b(?:{'|'.join(METHODS)})[ ,]+/", re.IGNORECASE)


class SqlFileError(Exception):
    """A file cannot become an endpoint. line, column: from 1; None: the error concerns the whole file."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class SqlFile:
    """The content of a file. notes: annotations of its statements and parameters."""

    text: str
    statements: tuple[RawStatement, ...]
    parameters: Parameters
    notes: Notes
    comment: str
    """The lines of comments that may be ordinary annotations."""
    method: str
    """HTTP method derived from the statements."""


def read_file(text: str, *, whole: bool = True) -> SqlFile:
    """Parse a file.

    whole: `comment` of the result has the lines of all comments, and annotations of parameters are read in all of them;
    otherwise in those before the end of the first statement. Annotations of statements are read in all comments in
    either case, as their place says which statement they are about.

    Raises:
        SqlFileError: the placeholders are invalid, or a statement cannot run for a request.
    """
    parts = split(text)
    _refuse_copies(text, parts.statements)
    try:
        parameters = number(parts.statements)
    except PlaceholderError as error:
        raise SqlFileError(str(error), *place(text, error.start)) from None
    comments = tuple(comment for comment in parts.comments if whole or comment.header)
    return SqlFile(
        text=text,
        statements=parts.statements,
        parameters=parameters,
        notes=read_notes(parts.comments, comments, len(parts.statements), parameters.names),
        comment="\n".join(line for line, _ in comment_lines(comments)),
        method=automatic_method(parts.statements),
    )


def _refuse_copies(text: str, statements: tuple[RawStatement, ...]) -> None:
    """Raise `SqlFileError` for COPY from or to the client.

    PostgreSQL describes such a statement without an error, but its data is not a result, or it would wait for input.
    """
    for statement in statements:
        if copies_to_client(statement):
            message = "COPY FROM STDIN and COPY TO STDOUT cannot run through an endpoint; select rows or insert them"
            raise SqlFileError(message, *place(text, statement.start))


def asks_for_endpoint(text: str, keywords: frozenset[str], *, whole: bool = True) -> bool:
    """Return whether a comment line begins with the word `http`, or with one of `keywords`, in any case and with or
    without `@` (sql-files-5).

    keywords: in lower case. whole: read the comments of the whole file; otherwise only those before the end of the
    first statement.

    This is checked before anything else, so that errors in a script that is no endpoint are not reported.
    """
    if not any(word in text.lower() for word in ("http", *keywords)):
        return False
    first_words = keywords | {"http"}
    comments = tuple(comment for comment in split(text).comments if whole or comment.header)
    return any(
        line.removeprefix("@").split(None, 1)[:1] and _first(line) in first_words for line, _ in comment_lines(comments)
    )


def find_route(text: str, *, whole: bool = True) -> tuple[str, int] | None:
    """Return the first comment line that is a method and a path without `HTTP`, and its number from 1; None: no such
    line. whole: as in `asks_for_endpoint`.

    This is only useful if `asks_for_endpoint` is false: beside an `HTTP` line, such a line may be prose.
    """
    if not _MAY_BE_ROUTE.search(text):
        return None
    for comment in split(text).comments:
        for line, _ in comment_lines((comment,) if whole or comment.header else ()):
            if is_route(Line(line)):
                return line, place(text, text.find(line, comment.start))[0]
    return None


def _first(line: str) -> str:
    return line.removeprefix("@").split(None, 1)[0].lower()


def place(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of an offset in characters, both from 1."""
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - line_start + 1


def excerpt(text: str, line: int, column: int, width: int = 120) -> str:
    """Return a line of the text, cut to `width` characters around the column, and below it a line with a caret at the
    column. line, column: from 1."""
    source = text.split("\n")[line - 1].rstrip("\r").replace("\t", " ")
    first = max(0, column - width // 2)
    return f"{source[first : first + width]}\n{' ' * (column - 1 - first)}^"
