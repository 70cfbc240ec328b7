"""Rewriting of row commands: one statement processes many rows with the same effect as one statement for each row.

There are two kinds. An insert of one row of values becomes an insert that selects the values from the rows. A select of
one value, such as the call of a function, is evaluated for each row; if it needs the result of the previous row, in a
recursive query, which processes one row at a time. All other commands run row by row.

If a command names its cells individually (`($2)[3]`), the server gets an array of texts for each such column, instead
of an array for each row. These are read faster, and rows are not parsed again for each of their cells. For a row with
fewer cells, the value is NULL, as the subscript returns it. The file metadata may be the same for all rows, or differ
from row to row, as in a workbook; and rows may be JSON instead of arrays of texts. (`COPY` would be faster still, but
is impossible: libpq does not support it in pipeline mode, and COPY supports neither expressions nor the rules of a
view.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rowcall.core.data.record import Record
from rowcall.core.uploads.row_command import FILE, PREVIOUS, RowCommand

_ENDS = frozenset(
    {"from", "where", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "into", "union"}
    | {"intersect", "except", "returning", "on", "default"}
)
_TOKEN = re.compile(
    r"""
    [eE]'(?:\\.|''|[^'\\])*' | '(?:''|[^'])*' | "(?:""|[^"])*"
    | --[^\n]* | /\*.*?\*/ | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$ | (?<!\w)\$(?P<number>\d+)
    | (?P<word>[^\W\d][\w$]*) | (?P<mark>[(),;\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
_CELL = re.compile(
    r"(?:\(\s*\$(?P<in_brackets>\d+)\s*\)|(?<!\w)\$(?P<bare>\d+))\s*\[\s*(?P<cell>[1-9]\d{0,3})\s*\](?!\s*\[)|"
    + _TOKEN.pattern,
    re.VERBOSE | re.DOTALL,
)
"""A cell of a row, or another token."""
_INSERT = re.compile(r"insert\s+into\s", re.IGNORECASE)
_SELECT = re.compile(r"select\s", re.IGNORECASE)

ROW = "rowcall_row"


@dataclass(frozen=True, slots=True)
class Pattern(Record):
    """The parts of a row command that can process many rows.

    head: of an insert, the SQL up to the word `values`; empty for a select. expression: SQL that is evaluated for each
    row: the values of the insert, separated by commas, or the value of the select.
    """

    head: str
    expression: str

    @property
    def inserts(self) -> bool:
        return bool(self.head)


@dataclass(frozen=True, slots=True)
class Batch(Record):
    """One statement for many rows.

    Its values, in this order: the number of the row before the first; the rows, as an array of texts; the previous
    result; the file metadata (if it differs by row, as an array of texts); the parameters; an array of texts for each
    of `columns`, the numbers of cells from 1. If there are columns, the rows are not used. picks: for each `$n`, the
    index of its value in this order. types: their oids; 0: PostgreSQL infers the type.
    """

    sql: str
    picks: tuple[int, ...]
    types: tuple[int, ...]
    columns: tuple[int, ...] = ()


def pattern(command: RowCommand) -> Pattern | None:
    """Return the parts of a command that can process many rows: an insert of one row of values that does not use the
    previous result, or a select of one value. None: the command is neither, or uses a `$n` that has no value."""
    sql = command.sql
    if any(match["number"] and not 0 < int(match["number"]) <= len(command.picks) for match in _tokens(sql)):
        return None  # the server reports the number, for one row
    if _INSERT.match(sql):
        result = _values(sql)
        return None if result is None or command.chained else result
    if _SELECT.match(sql) and _is_one_value(sql[6:]):
        return Pattern("", sql[6:].strip())
    return None


def _values(sql: str) -> Pattern | None:
    """Return the parts of `insert into … values (one row)` without a further clause. None for other commands, and if
    the row contains `default` or a subquery."""
    depth, start = 0, -1
    for match in _tokens(sql):
        if depth == 0 and (match["word"] or "").lower() == "values":
            start = match.end()
            break
        depth += {"(": 1, ")": -1}.get(match["mark"] or "", 0)
    rest = sql[start:].strip()
    if start < 0 or not rest.startswith("(") or not rest.endswith(")") or _closes(rest) != len(rest) - 1:
        return None
    inner = rest[1:-1].strip()
    words = {(match["word"] or "").lower() for match in _tokens(inner)}
    if "default" in words or "select" in words:
        return None
    return Pattern(sql[: start - len("values")].rstrip(), inner)


def _closes(text: str) -> int:
    """Return the position of the parenthesis that closes the one at the beginning of the text; -1: it is not closed."""
    depth = 0
    for match in _tokens(text):
        depth += {"(": 1, ")": -1}.get(match["mark"] or "", 0)
        if depth == 0:
            return match.start()
    return -1


def _is_one_value(text: str) -> bool:
    """Return whether the text behind `select` is one expression without subqueries, further clauses and an alias. An
    alias without `as` is not recognized; PostgreSQL then refuses the batch, and rows run one by one."""
    depth = 0
    for match in _tokens(text):
        mark, word = match["mark"] or "", (match["word"] or "").lower()
        if depth == 0 and (mark in (",", ";") or word in _ENDS or word in ("distinct", "all", "as")):
            return False
        if word == "select":
            return False
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(mark, 0)
    return True


def _tokens(text: str) -> Iterator[re.Match[str]]:
    return _TOKEN.finditer(text)


@dataclass(frozen=True, slots=True)
class Types(Record):
    """Names of the SQL types to which a batch casts values. result: of the command's result. previous, cells, about: of
    the previous result, the cells and the file metadata as the command uses them. Empty `about`: the file metadata is
    the same for all rows."""

    result: str = ""
    previous: str = ""
    cells: str = "pg_catalog.text[]"
    about: str = ""


_PLAIN = Types()


def batch(command: RowCommand, pattern: Pattern, types: Types = _PLAIN) -> Batch:
    """Return the statement that runs a row command for many rows. pattern: the parts of the command, from `pattern`.

    In the SQL, a line end follows each of these parts, because a part may end with a line comment.
    """
    numbers = _Numbers(command)
    recursive = command.chained and types.result != "void"
    columns = () if recursive or types.cells != _PLAIN.cells else _columns(command, pattern.expression)
    first = numbers.of(0)
    each_about = numbers.of(FILE) if types.about and command.has_file_metadata else ""
    if columns:
        pattern = Pattern(pattern.head, _with_columns(command, pattern.expression))
        cells = numbers.of(command.values)
        result = (f"pg_catalog.unnest({numbers.of(command.values + place)}) as c{k}" for place, k in enumerate(columns))
        count = f"({first} + pg_catalog.generate_subscripts({cells}, 1))::pg_catalog.int4 as number"
        about = f", pg_catalog.unnest({each_about}) as about" if each_about else ""
        rows = f"(select {count}, {', '.join(result)}{about} offset 0) as {ROW}"
    else:
        cells = numbers.of(1)
        names = "cells, about" if each_about else "cells"
        sources = f"rows from (pg_catalog.unnest({cells}), pg_catalog.unnest({each_about}))"
        rows = (
            f"(select ({first} + {ROW}.place)::pg_catalog.int4 as number, {ROW}.cells::{types.cells} as cells"
            f"{f', {ROW}.about' if each_about else ''}"
            f" from {sources if each_about else f'pg_catalog.unnest({cells})'}"
            f" with ordinality as {ROW}({names}, place) offset 0) as {ROW}"
        )
    of_row = {0: f"{ROW}.number", 1: f"{ROW}.cells"}
    if each_about:
        of_row[FILE] = f"{ROW}.about::{types.about}"
    if pattern.inserts:
        expression = numbers.renumber_expression(pattern.expression, of_row)
        sql = f"{pattern.head}\nselect {expression}\nfrom {rows}"
    elif not recursive:
        replacements = {**of_row, PREVIOUS: f"null::{types.previous}"}
        expression = numbers.renumber_expression(pattern.expression, replacements)
        sql = f"select {expression}\nas value from {rows} offset pg_catalog.cardinality({cells}) - 1"
    else:
        place = f"({ROW}.place + 1)"
        replacements = {
            0: f"({first} + {place})::pg_catalog.int4",
            1: f"(({cells})[{place}]::{types.cells})",
            PREVIOUS: f"{ROW}.value::{types.previous}",
        }
        if each_about:
            replacements[FILE] = f"(({each_about})[{place}]::{types.about})"
        expression = numbers.renumber_expression(pattern.expression, replacements)
        sql = (
            f"with recursive {ROW}(place, value) as (select 0, {numbers.of(PREVIOUS)}::{types.result} union all"
            f" select {place}, ({expression}\n)::{types.result} from {ROW}"
            f" where {ROW}.place < pg_catalog.cardinality({cells}))"
            f" select value from {ROW} offset pg_catalog.cardinality({cells})"
        )
    texts = (1, FILE) if each_about else (1,)
    oids = (_TYPES[1] if pick in texts or pick >= command.values else _TYPES.get(pick, 0) for pick in numbers.picks)
    return Batch(sql, tuple(numbers.picks), tuple(oids), columns)


_TYPES = {0: 23, 1: 1009}
"""int4 and text[]; other types are inferred."""


def _columns(command: RowCommand, expression: str) -> tuple[int, ...]:
    """Return the numbers of the cells, from 1 and ascending, that the expression names; none if it also uses the row in
    another way."""
    result = set()
    for match in _CELL.finditer(expression):
        if match["cell"] and _is_of_cells(command, match):
            result.add(int(match["cell"]))
        elif match["number"] and command.picks[int(match["number"]) - 1] == 1:
            return ()
    return tuple(sorted(result))


def _with_columns(command: RowCommand, expression: str) -> str:
    """Return the expression with a column of the rows in place of each cell, such as `($2)[3]`."""

    def write(match: re.Match[str]) -> str:
        return f"({ROW}.c{int(match['cell'])})" if match["cell"] and _is_of_cells(command, match) else match[0]

    return _CELL.sub(write, expression)


def _is_of_cells(command: RowCommand, match: re.Match[str]) -> bool:
    return command.picks[int(match["in_brackets"] or match["bare"]) - 1] == 1


def with_nulls(command: RowCommand, types: Sequence[str]) -> str:
    """Return the SQL of the command with NULLs in place of its values, so that its result can be described. types:
    names of the types of `$1`, `$2` …"""

    def write(match: re.Match[str]) -> str:
        return f"null::{types[int(match['number']) - 1]}" if match["number"] else match[0]

    return _TOKEN.sub(write, command.sql)


class _Numbers:
    """Assigns the parameter numbers `$n` of the batch to the values."""

    def __init__(self, command: RowCommand) -> None:
        self._command = command
        self.picks: list[int] = []

    def of(self, value: int) -> str:
        """Return the `$n` of a value; it is assigned at the first use. value: its index in the order of `Batch`."""
        if value not in self.picks:
            self.picks.append(value)
        return f"${self.picks.index(value) + 1}"

    def renumber_expression(self, expression: str, instead: dict[int, str]) -> str:
        """Return the expression with new numbers. instead: index of a value of the row command → SQL in its place;
        other values get a `$n` of the batch."""

        def write(match: re.Match[str]) -> str:
            if not match["number"]:
                return match[0]
            value = self._command.picks[int(match["number"]) - 1]
            return instead[value] if value in instead else self.of(value)

        return _TOKEN.sub(write, expression)


def is_one_evaluation(plan: object) -> bool:
    """Return whether the plan of a select evaluates only one value, without a set of rows or a subquery.

    plan: from EXPLAIN in JSON.
    """
    node = plan[0]["Plan"] if isinstance(plan, list) else {}
    return node.get("Node Type") == "Result" and "Plans" not in node
