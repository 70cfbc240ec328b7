"""Constraints of values that the database enforces: NOT NULL and lists of choices.

Only parses texts of constraints; `service.snapshot.column_constraints` reads the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rowcall.core.data.record import Record

Choice = str | int


@dataclass(frozen=True, slots=True)
class ValueConstraints(Record):
    """Constraints of a column, a parameter, or an attribute of a composite."""

    never_null: bool = False
    choices: tuple[Choice, ...] = ()
    """All possible values, or values of elements of an array; empty: any."""
    text: str | None = None
    """Text of the comment."""

    def combined_with(self, other: ValueConstraints) -> ValueConstraints:
        """Return the combined constraints. Those of `self` precede."""
        return ValueConstraints(
            self.never_null or other.never_null, self.choices or other.choices, self.text or other.text
        )


NO_CONSTRAINTS = ValueConstraints()


@dataclass(frozen=True, slots=True)
class ColumnConstraints:
    """Constraints of one database."""

    types: Mapping[int, ValueConstraints] = field(default_factory=dict)
    """Of enums and domains, by oid."""
    attributes: Mapping[tuple[int, str], ValueConstraints] = field(default_factory=dict)
    """Of columns of relations, by the oid of the row type and name."""
    columns: Mapping[tuple[int, int], ValueConstraints] = field(default_factory=dict)
    """The same, by the oid of the relation and number."""


_TEXT = r"'(?:[^']|'')*'"
_CAST = r"(?:::[a-z \"]+(?:\(\d+\))?)*"
_ITEM = rf"\(?(?:{_TEXT}|-?\d+){_CAST}\)?{_CAST}"
_CHECK = re.compile(
    rf"CHECK \(\(*(?P<name>\"(?:[^\"]|\"\")+\"|[a-zA-Z_][\w$]*)\)*(?:::text|::bpchar)?\)* = "
    rf"(?:ANY \(\(*ARRAY\[(?P<items>{_ITEM}(?:, {_ITEM})*)\]\)*(?:::[a-z ]+\[\])?\)*|\(*(?P<item>{_ITEM})\)*)\)"
)
_VALUE = re.compile(rf"(?P<text>{_TEXT})(?P<cast>(?:::[a-z \"]+)?)|(?P<number>-?\d+)")


def choices_of(constraint: str) -> tuple[Choice, ...]:
    """Return the choices of `CHECK ((kind = ANY (ARRAY['a'::text, 'b'::text])))`, the text of `kind in ('a', 'b')` in
    PostgreSQL.

    Return an empty tuple for other constraints, and if NULL is a choice. The constraint must be about one column or one
    domain.
    """
    match = _CHECK.fullmatch(constraint)
    if match is None:
        return ()
    return tuple(dict.fromkeys(_values(match["items"] or match["item"])))


def _values(items: str) -> Iterable[Choice]:
    for match in _VALUE.finditer(items):
        if match["number"] is not None:
            yield int(match["number"])
        else:
            text = match["text"][1:-1].replace("''", "'")
            yield int(text) if match["cast"] in _INTEGERS else text


_INTEGERS = ("::integer", "::bigint", "::smallint")
_UNSURE = re.compile(r"\b(?:left|right|full|outer|union|intersect|except|grouping|rollup|cube|merge|old|new)\b", re.I)


def keeps_nulls_out(sql: str) -> bool:
    """Return whether a column that a statement takes unchanged from a table has only values of the table. An outer
    join, for example, can replace them by NULL. False if unknown."""
    return _UNSURE.search(sql) is None
