"""Hypothesis strategies: types, their values as PostgreSQL text with the JSON meaning, and broken texts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.ext.twins.arrays import Nested, print_array
from tests.ext.twins.composites import print_tuple
from tests.ext.twins.types import Array, Composite, Domain, Scalar, Type
from tests.ext.twins.values import Place, base_of, is_composite

Value = tuple[str | None, Any]
"""PostgreSQL's text (None for NULL) and the value of its JSON."""

SYNTAX = "{}()[],;:=\"\\' \n\t\x01NULLtf01-"
TEXTS = st.text(
    st.one_of(st.sampled_from(SYNTAX), st.characters(exclude_categories=["Cs"], exclude_characters="\0")), max_size=40
)
GARBAGE = st.text(st.sampled_from('{}{}()(),,;""\\\\NULLt1[0:1]=é'), max_size=30)
DATETIMES = st.sampled_from(
    [
        ("2024-01-15 10:30:00", "2024-01-15T10:30:00"),
        ("2024-07-01 06:30:00.5+00", "2024-07-01T06:30:00.5+00:00"),
        ("2024-07-01 06:30:00-03:30", "2024-07-01T06:30:00-03:30"),
        ("1880-01-01 00:00:00+00:53:28", "1880-01-01T00:00:00+00:53:28"),
        ("infinity", "infinity"),
        ("-infinity", "-infinity"),
        ("0044-03-15 08:00:00 BC", "0044-03-15T08:00:00 BC"),
        ("0044-03-15 08:00:00+00 BC", "0044-03-15T08:00:00+00:00 BC"),
    ]
)
NUMBERS = st.one_of(
    st.integers().map(str), st.sampled_from(["1.50", "-0", "1e+30", "1e-07", "0.0000000001", "NaN", "-Infinity"])
)
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-99, 99), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)
RULES = ("text", "number", "boolean", "json", "datetime")
SCALARS = st.sampled_from([Scalar(rule) for rule in RULES])


def _containers(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    keys = st.lists(TEXTS, min_size=1, max_size=4, unique=True)
    composites = keys.flatmap(
        lambda names: st.tuples(*[inner] * len(names)).map(
            lambda kinds: Composite(tuple(zip(names, kinds, strict=True)))
        )
    )
    return st.one_of(st.builds(Array, inner, st.sampled_from(",;")), composites, st.builds(Domain, inner))


TYPES: st.SearchStrategy[Type] = st.one_of(st.just(Scalar("record")), st.recursive(SCALARS, _containers, max_leaves=8))


def values_of(kind: Type, place: Place = "column") -> st.SearchStrategy[Value]:
    return st.one_of(st.just((None, None)), present_values_of(kind, place))


def present_values_of(kind: Type, place: Place) -> st.SearchStrategy[Value]:
    match kind:
        case Scalar(rule):
            return _scalar_values(rule, place)
        case Domain(base) if place != "column" and isinstance(base_of(kind), Scalar):
            if base_of(kind) == Scalar("datetime"):
                return present_values_of(base, place)
            return present_values_of(base, place).map(lambda value: (value[0], value[0]))
        case Domain(base):
            return present_values_of(base, place)
        case Array(element, delimiter):
            return st.one_of(_one_dimension(element, delimiter), _two_dimensions(element, delimiter))
        case Composite(fields):
            slots = st.tuples(*[values_of(field, "field") for _, field in fields])
            return slots.map(
                lambda values: (
                    print_tuple([text for text, _ in values]),
                    {key: meaning for (key, _), (_, meaning) in zip(fields, values, strict=True)},
                )
            )


def _scalar_values(rule: str, place: Place) -> st.SearchStrategy[Value]:
    if rule == "number":
        return NUMBERS.map(lambda text: (text, text if text[-1].isalpha() or text == "NaN" else json.loads(text)))
    if rule == "boolean":
        return st.booleans().map(lambda value: ("t" if value else "f", value))
    if rule == "json":
        return JSON_VALUES.map(lambda value: (json.dumps(value, ensure_ascii=False), value))
    if rule == "datetime":
        return DATETIMES
    if rule == "record":
        return st.lists(st.none() | TEXTS, min_size=1, max_size=4).map(lambda slots: (print_tuple(slots), slots))
    return TEXTS.map(lambda text: (text, text))


def _one_dimension(element: Type, delimiter: str) -> st.SearchStrategy[Value]:
    return st.lists(values_of(element, "element"), max_size=4).map(
        lambda values: (print_array([text for text, _ in values], delimiter), [meaning for _, meaning in values])
    )


def _two_dimensions(element: Type, delimiter: str) -> st.SearchStrategy[Value]:
    # Composites in more than one dimension are tuple strings (rendering-29, rendering-30).
    def both(rows: list[list[Value]]) -> Value:
        texts: Nested = [[text for text, _ in row] for row in rows]
        meanings = [[text if is_composite(element) else meaning for text, meaning in row] for row in rows]
        return print_array(texts, delimiter), meanings

    row = st.lists(values_of(element, "element"), min_size=2, max_size=2)
    return st.lists(row, min_size=1, max_size=2).map(both)


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[Type, str, Any]:
    """Draw a type, the text of a value, and its meaning."""
    kind = draw(TYPES)
    text, meaning = draw(present_values_of(kind, "column"))
    assert text is not None
    return kind, text, meaning


@st.composite
def broken_texts(draw: st.DrawFn) -> tuple[Type, str]:
    """Draw a type and a broken text: a value with a piece replaced by another one, or syntax characters only."""
    kind = draw(TYPES)
    if draw(st.booleans()):
        return kind, draw(GARBAGE)
    text, _ = draw(present_values_of(kind, "column"))
    assert text is not None
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 3)))
    return kind, text[:start] + draw(st.text(st.sampled_from(SYNTAX), max_size=2)) + text[end:]
