"""Spelling of types behind `::`."""

from __future__ import annotations

import pytest

from rowcall.core.catalogue.casting import attribute_cast_text, base_of, cast_text
from rowcall.core.catalogue.catalog import Attribute
from tests.core.routines import ARRAY, CRATE, DOCUMENT, GAUGES, QUANTITY, STATE, TYPES


@pytest.mark.parametrize(
    ("oid", "text"),
    [
        (23, "integer"),
        (1184, "timestamp with time zone"),
        (23 + ARRAY, "integer[]"),
        (CRATE, '"shop"."crate"'),
        (GAUGES, '"public"."gauge"[]'),
        (QUANTITY, '"shop"."quantity"'),
        (STATE, '"shop"."State"'),
        (2283, "text"),
        (2277, "text[]"),
    ],
)
def test_a_cast_does_not_depend_on_the_search_path(oid: int, text: str) -> None:
    assert cast_text(oid, TYPES) == text


@pytest.mark.parametrize(
    ("oid", "text"), [(1042, "bpchar"), (1042 + ARRAY, "bpchar[]"), (1560, '"bit"'), (1560 + ARRAY, '"bit"[]')]
)
def test_a_cast_to_char_or_bit_does_not_mean_length_one(oid: int, text: str) -> None:
    assert cast_text(oid, TYPES) == text


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (Attribute("a", 1700, "numeric(10,2)"), "numeric(10,2)"),
        (Attribute("a", 1042, "character(3)"), "character(3)"),
        (Attribute("a", 1042, "character"), "bpchar"),
        (Attribute("a", CRATE, "shop.crate"), '"shop"."crate"'),
    ],
)
def test_the_length_of_an_attribute_is_preserved(attribute: Attribute, text: str) -> None:
    assert attribute_cast_text(attribute, TYPES) == text


def test_a_domain_has_its_base_type() -> None:
    base = base_of(DOCUMENT, TYPES)
    assert base is not None
    assert base.name == "json"
