"""What the database proves about values: where NULL cannot be, and which values there are at all.

Texts of constraints in, facts out; who reads the catalogue is `service.snapshot.column_constraints`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rowcall.core.data.record import Record

Choice = str | int


@dataclass(frozen=True, slots=True)
class ValueConstraints(Record):
    """Of a column, a parameter, an attribute of a composite."""

    never_null: bool = False
    choices: tuple[Choice, ...] = ()
    """All values that it may have, or that elements of the array may have; empty: any."""
    text: str | None = None
    """What its comment says."""

    def besides(self, other: ValueConstraints) -> ValueConstraints:
        """What both say together."""
        return ValueConstraints(
            self.never_null or other.never_null, self.choices or other.choices, self.text or other.text
        )


NO_CONSTRAINTS = ValueConstraints()


@dataclass(frozen=True, slots=True)
class ColumnConstraints:
    """Of one database."""

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
    """`CHECK ((kind = ANY (ARRAY['a'::text, 'b'::text])))`, as PostgreSQL writes `kind in ('a', 'b')`; nothing for any
    other constraint, and for one that has NULL among its values. The constraint is about one column or one domain."""
    match = _CHECK.fullmatch(constraint)
    if match is None:
        return ()
    return tuple(dict.fromkeys(_values(match["items"] or match["item"])))


def _values(items: str) -> Iterable[Choice]:
    for one in _VALUE.finditer(items):
        if one["number"] is not None:
            yield int(one["number"])
        else:
            text = one["text"][1:-1].replace("''", "'")
            yield int(text) if one["cast"] in _INTEGERS else text


_INTEGERS = ("::integer", "::bigint", "::smallint")
_UNSURE = re.compile(r"\b(?:left|right|full|outer|union|intersect|except|grouping|rollup|cube|merge|old|new)\b", re.I)


def keeps_nulls_out(sql: str) -> bool:
    """A column that a statement takes from a table as it is has the table's values and no others: nothing in its text
    can put a NULL in their place, as outer joins do. False where that cannot be told."""
    return _UNSURE.search(sql) is None
