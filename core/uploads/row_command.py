"""Row commands: SQL with `$1` to `$4`, and `{placeholders}` that become further values.

A value of a request is never part of the SQL text: `{name}` becomes a `$n` of its own, also inside a plain string,
which the server then concatenates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.core.data.record import Record

ROW_VALUES = 4
"""Number of values of a row: its number, its cells, the previous result, the file metadata."""
CELLS = 1
"""Index of the cells among the values of a row."""
PREVIOUS = 2
"""Index of the previous result among the values of a row."""
FILE = 3
"""Index of the file metadata among the values of a row."""

_INT4, _TEXT_ARRAY, _TEXT = 23, 1009, 25

_TOKENS = re.compile(
    r"""
    [eE]'(?:\\.|''|[^'\\])*' | (?P<string>'(?:''|[^'])*') | "(?:""|[^"])*"
    | --[^\n]* | /\*.*?\*/ | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$ | (?<!\w)\$(?P<number>\d+)
    | \{(?P<name>[^\W\d]\w*|\$\d+)\}
    """,
    re.VERBOSE | re.DOTALL,
)
_PLACEHOLDER = re.compile(r"\{([^\W\d]\w*|\$\d+)\}")


@dataclass(frozen=True, slots=True)
class RowCommand(Record):
    """A parsed row command."""

    sql: str
    """The SQL, with `$n` numbered without gaps, because an unused number would be a value without a type."""
    picks: tuple[int, ...]
    """For each `$n`, the index of its value: values of the row come first, then those of `parameters`."""
    types: tuple[int, ...]
    """Type oids of the values of `picks`; 0: PostgreSQL infers the type."""
    parameters: tuple[int, ...]
    """Indexes of the endpoint's parameters whose values the command takes in addition."""

    @property
    def values(self) -> int:
        return ROW_VALUES + len(self.parameters)

    @property
    def chained(self) -> bool:
        """Whether each row needs the result of the previous one."""
        return PREVIOUS in self.picks

    @property
    def has_file_metadata(self) -> bool:
        """Whether the command uses the file metadata."""
        return FILE in self.picks


def row_command(text: str, names: Mapping[str, int], *, cells_are_json: bool = False) -> RowCommand:
    """Parse a row command. `$n` above `$4`, which `check_numbers` refuses, and placeholders that `names` lacks stay as
    they are.

    names: of placeholders in lower case → index of the endpoint's parameter, from
    `core.endpoint.template.placeholder_names`. cells_are_json: the cells are JSON instead of an array of texts.
    """
    parser = _CommandParser(names)
    sql = parser.read(text)
    row_types = (_INT4, 0 if cells_are_json else _TEXT_ARRAY, 0, 0)
    types = tuple(row_types[index] if index < ROW_VALUES else 0 for index in parser.picks)
    return RowCommand(sql, tuple(parser.picks), types, tuple(parser.parameters))


def check_numbers(text: str) -> str:
    """Return a row command unchanged. Raises ValueError if it has a `$n` other than `$1` to `$4`, which would get the
    value of a placeholder, or none."""
    unknown = _unknown_number(text)
    # A comment at the end may contain anything. Few commands come here, so few workers import what finds it.
    if unknown is not None:
        unknown = _unknown_number(_without_end(text))
    if unknown is not None:
        raise ValueError(f"a row command has the values $1 to ${ROW_VALUES}, not ${unknown}")
    return text


def _unknown_number(text: str) -> str | None:
    """Return the number of the first `$n` other than `$1` to `$4`; None if there is none."""
    numbers = (match["number"] for match in _TOKENS.finditer(text) if match["number"])
    return next((number for number in numbers if not 0 < int(number) <= ROW_VALUES), None)


def _without_end(text: str) -> str:
    """Return the command without comments and semicolons at its end."""
    # Imported only for row commands, because each worker imports this module.
    from rowcall.core.text.sql_lexer import statement_span

    return text[: statement_span(text).stop].strip()


class _CommandParser:
    def __init__(self, names: Mapping[str, int]) -> None:
        self._names = names
        self.picks: list[int] = []
        self.parameters: list[int] = []

    def read(self, text: str) -> str:
        return _TOKENS.sub(self._token, _without_end(text))

    def _token(self, match: re.Match[str]) -> str:
        if match["number"]:
            number = int(match["number"])
            return self._value(number - 1) if 0 < number <= ROW_VALUES else match[0]
        if match["name"]:
            return self._parameter_value(match["name"]) or match[0]
        return self._string(match[0]) if match["string"] else match[0]

    def _string(self, literal: str) -> str:
        parts = _PLACEHOLDER.split(literal[1:-1])
        pieces = [
            (self._parameter_value(part, "::text") if place % 2 else f"'{part}'") or f"'{{{part}}}'"
            for place, part in enumerate(parts)
        ]
        pieces = [piece for piece in pieces if piece != "''"]
        return literal if len(parts) == 1 else f"({' || '.join(pieces)})"

    def _parameter_value(self, name: str, cast: str = "") -> str | None:
        index = self._names.get(name.lower())
        if index is None:
            return None
        if index not in self.parameters:
            self.parameters.append(index)
        value = self._value(ROW_VALUES + self.parameters.index(index))
        # NULL in a text would make the whole text NULL; for a placeholder it is an empty text.
        return f"coalesce({value}{cast}, '')" if cast else value

    def _value(self, index: int) -> str:
        if index not in self.picks:
            self.picks.append(index)
        return f"${self.picks.index(index) + 1}"
