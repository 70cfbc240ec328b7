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
    """Constraints of a column, a parameter, or an attribute of a composite. never_null: no value is NULL."""

    never_null: bool = False
    choices: tuple[Choice, ...] = ()
    """All possible values, or values of elements of an array; empty: any."""
    text: str | None = None
    """Text of the comment of the column or type."""

    def combine(self, other: ValueConstraints) -> ValueConstraints:
        """Return constraints that are never NULL if those of `self` or `other` are, with the choices and the text of
        `self`, or of `other` where `self` has none."""
        return ValueConstraints(
            self.never_null or other.never_null, self.choices or other.choices, self.text or other.text
        )


NO_CONSTRAINTS = ValueConstraints()


@dataclass(frozen=True, slots=True)
class ColumnConstraints:
    """Constraints of one database."""

    types: Mapping[int, ValueConstraints] = field(default_factory=dict)
    """Constraints of enums and domains, by oid."""
    attributes: Mapping[tuple[int, str], ValueConstraints] = field(default_factory=dict)
    """Constraints of columns of relations, by the oid of the row type and the name of the column."""
    columns: Mapping[tuple[int, int], ValueConstraints] = field(default_factory=dict)
    """Constraints of the same columns, by the oid of the relation and the number of the column."""


_TEXT = r"'(?:[^']|'')*'"
_CAST = r"(?:::[a-z \"]+(?:\(\d+\))?)*"
_ITEM = rf"\(?(?:{_TEXT}|-?\d+){_CAST}\)?{_CAST}"
_CHECK = re.compile(
    rf"CHECK \(\(*(?P<name>\"(?:[^\"]|\"\")+\"|[a-zA-Z_][\w$]*)\)*(?:::text|::bpchar)?\)* = "
    rf"(?:ANY \(\(*ARRAY\[(?P<items>{_ITEM}(?:, {_ITEM})*)\]\)*(?:::[a-z ]+\[\])?\)*|\(*(?P<item>{_ITEM})\)*)\)"
)
_VALUE = re.compile(rf"\(?(?:(?P<text>{_TEXT})|(?P<number>-?\d+))(?P<casts>{_CAST}\)?{_CAST})")
_INTEGER = re.compile("::(?:integer|bigint|smallint)\\b")
_LENGTH = re.compile(r"::character(?: varying)?\((\d+)\)")


def choices_of(constraint: str, width: int | None = None) -> tuple[Choice, ...]:
    """Return the choices in the text of a CHECK constraint, such as `CHECK ((kind = ANY (ARRAY['a'::text,
    'b'::text])))`, or `CHECK ((kind = 'a'::text))` for one choice.

    PostgreSQL stores `kind in ('a', 'b')` in this form. Other constraints, and those with NULL as a choice, give an
    empty tuple. The constraint must be about one column or one domain. width: n of `char(n)`, to which PostgreSQL pads
    its values with spaces; None: of another type.
    """
    match = _CHECK.fullmatch(constraint)
    if match is None:
        return ()
    values = _values(match["items"] or match["item"])
    if width is not None:
        values = (value.rstrip(" ").ljust(width) if isinstance(value, str) else value for value in values)
    return tuple(dict.fromkeys(values))


def _values(items: str) -> Iterable[Choice]:
    """Yield the values of a list in a CHECK constraint. Numbers, and texts that are cast to an integer type, are
    integers. A cast to a shorter text cuts off the rest."""
    for match in _VALUE.finditer(items):
        if match["number"] is not None:
            yield int(match["number"])
        else:
            text = match["text"][1:-1].replace("''", "'")
            lengths = [int(length) for length in _LENGTH.findall(match["casts"])]
            yield int(text) if _INTEGER.match(match["casts"]) else text[: min(lengths, default=None)]


_UNSURE = re.compile(r"\b(?:left|right|full|outer|union|intersect|except|grouping|rollup|cube|merge|old|new)\b", re.I)


def keeps_nulls_out(sql: str) -> bool:
    """Return whether columns that a statement takes unchanged from tables contain NULL only where the tables do.

    False: unknown, for example because an outer join may replace values by NULL.
    """
    return _UNSURE.search(sql) is None
