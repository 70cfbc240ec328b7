"""Annotations of single statements and of parameter types in the comments of a file (sql-files-12 to sql-files-20).

The other annotations are read by `core.building.comments`. Lines that are used here are *claimed*: the ordinary
annotations treat them neither as annotations nor as prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rowcall.core.annotations.declaration import Line
from rowcall.core.annotations.rows.param import ANNOTATIONS, declared_type
from rowcall.core.annotations.rows.response import SINGLE
from rowcall.core.annotations.rows.sqlfiles import DEFINE_PARAM, RESULT, RETURNS, SKIP
from rowcall.core.sqlfile.splitting import Comment, comment_lines

_SINGLE = frozenset(SINGLE.aliases)
(PARAM,) = ANNOTATIONS
_TYPE = re.compile(r'[\w."]+(?: [\w."]+)*(?:\s?\([0-9, ]+\))?(?: [\w."]+)*(?:\[\])*')


@dataclass(frozen=True, slots=True)
class ReturnsLine:
    """A comment line that begins with `returns` and may declare the type of a result. at: its offset in the file."""

    type_name: str
    """The text behind `returns`, without a semicolon at its end. Only PostgreSQL knows whether it is a type."""
    line: str
    at: int
    certain: bool
    """The line has an `@`: if it names no type, it is a mistake and not prose."""


@dataclass(slots=True)
class StatementNotes:
    """Annotations of one statement. name: key of its result; None: the default. skip: its result is not in the
    response."""

    name: str | None = None
    single: bool = False
    skip: bool = False
    returns_lines: list[ReturnsLine] = field(default_factory=list)
    """Lines that may declare the type, in order."""
    returns: str | None = None
    """The declared type, which may be `void`; None: no type is declared. It is known after the database has said which
    of the lines name types."""


@dataclass(frozen=True, slots=True)
class Hint:
    """The type that a `param` line declares for a parameter. line: the comment line as written."""

    type_name: str
    """The type in lower case, not yet checked. The words behind the first one may be prose."""
    line: str

    @property
    def readings(self) -> tuple[str, ...]:
        """Texts that may be the name of the type, the longest first."""
        return (self.type_name, self.type_name.split()[0])


@dataclass(frozen=True, slots=True)
class VirtualParameter:
    """`define_param`: a request parameter that the SQL does not use. line: the comment line as written."""

    name: str
    type_name: str
    """The type in lower case, not yet checked. Words behind the first one may be superfluous."""
    line: str

    @property
    def readings(self) -> tuple[str, ...]:
        """Texts that may be the name of the type, the longest first."""
        return (self.type_name, self.type_name.split()[0].rstrip(";"))


@dataclass(slots=True)
class Notes:
    """The annotations of statements and parameters in the comments of a file."""

    statements: list[StatementNotes]
    hints: dict[int, Hint]
    """Index of a parameter → its declared type."""
    virtual: list[VirtualParameter]
    claimed: set[str] = field(default_factory=set)
    """Lines that ordinary annotations ignore."""
    warnings: list[str] = field(default_factory=list)
    """Warnings about lines that are nearly annotations."""


def read_notes(
    comments: Sequence[Comment], annotating: Sequence[Comment], count: int, parameters: Sequence[str]
) -> Notes:
    """Return the annotations of statements and parameters in the comments of a file.

    comments: all of the file, which may have annotations of statements. annotating: those of them that may have
    annotations of parameters. count: number of statements. parameters: names of the file's parameters, `$1 … $n` if
    they have no names.
    """
    notes = Notes([StatementNotes() for _ in range(count)], {}, [])
    for line, comment in comment_lines(tuple(comments)):
        if comment.statement < count:
            _about_statement(line, comment, notes, several=count > 1)
        elif count:
            _about_no_statement(line, notes, several=count > 1)
    lines = [line for line, _ in comment_lines(tuple(annotating))]
    for line in lines:
        _about_parameters(line, notes)
    notes.hints.update(_hints(lines, parameters))
    return notes


def _about_statement(line: str, comment: Comment, notes: Notes, *, several: bool) -> None:
    words = line.removeprefix("@").split()
    keyword = words[0].lower() if words else ""
    about = notes.statements[comment.statement]
    rest = words[1:]
    if keyword in _SINGLE and not rest:
        about.single = True
        if several:
            notes.claimed.add(line)
    elif keyword in SKIP.aliases and not rest:
        about.skip = True
        notes.claimed.add(line)
    elif keyword in SKIP.aliases and line.startswith("@"):
        notes.warnings.append(f"{line!r} skips nothing: skip stands alone in its comment line")
    elif keyword in RESULT.aliases and not rest and line.startswith("@"):
        notes.warnings.append(f"{line!r} names no result: a name has to follow")
    elif keyword in RESULT.aliases and rest:
        about.name = rest[1] if rest[0].lower() == "is" and len(rest) > 1 else rest[0]
        notes.claimed.add(line)
    elif keyword in RETURNS.aliases and rest:
        _returns(line, " ".join(rest), comment, about)


def _about_no_statement(line: str, notes: Notes, *, several: bool) -> None:
    """Report an annotation of a statement that stands behind the last statement; only with `@`, as other lines may be
    prose."""
    about = {*SKIP.aliases, *RESULT.aliases, *RETURNS.aliases, *(_SINGLE if several else ())}
    if line.startswith("@") and line[1:].split(None, 1)[:1] and line[1:].split(None, 1)[0].lower() in about:
        notes.claimed.add(line)
        notes.warnings.append(
            f"{line!r} has no effect, as no statement follows: write it in front of its statement, or behind the "
            "semicolon on the same line"
        )


def _returns(line: str, type_name: str, comment: Comment, about: StatementNotes) -> None:
    """Record a `returns` line in `about`. A line without `@` is ignored if its text cannot be a type, because prose may
    begin with this word too.

    line: the comment line. type_name: the text behind `returns`.
    """
    certain = line.startswith("@")
    type_name = type_name.removesuffix(";").rstrip()
    if certain or is_type_text(type_name):
        at = comment.start + comment.text.find(line)
        about.returns_lines.append(ReturnsLine(type_name, line, at, certain))


def is_type_text(text: str) -> bool:
    """Return whether the text has the syntax of a type name."""
    return _TYPE.fullmatch(text) is not None


def _about_parameters(line: str, notes: Notes) -> None:
    words = line.removeprefix("@").replace(",", " ").rstrip("; ").split()
    if not words or words[0].lower() not in DEFINE_PARAM.aliases:
        return
    notes.claimed.add(line)
    if len(words) == 1:
        notes.warnings.append(f"{line!r} defines no parameter: a name has to follow")
        return
    type_name = " ".join(words[2:]).lower() or "text"
    notes.virtual.append(VirtualParameter(words[1].removeprefix(":"), type_name, line))


def _hints(lines: Iterable[str], parameters: Sequence[str]) -> Iterator[tuple[int, Hint]]:
    """Yield the index of a parameter and its declared type, for each `param` line that has one. Lines are read in
    order, as later ones use the names that earlier ones set. parameters: names as in `read_notes`."""
    index = {name.lower(): number for number, name in enumerate(parameters)}
    for text in lines:
        line = Line(text)
        if line.keyword not in PARAM.aliases or len(line.words) < PARAM.minimum_words:
            continue
        parameter, name, type_name = declared_type(line)
        number = index.get(parameter.lower())
        if number is None:
            continue
        if name is not None:
            index[name.lower()] = number
        if type_name is not None and (written := type_name.lower().rstrip("; ")):
            yield number, Hint(written, text)
