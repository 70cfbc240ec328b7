"""Facts that follow from constraints and statements, as PostgreSQL 13 to 18 print them."""

from __future__ import annotations

import pytest

from rowcall.core.catalogue.value_constraints import choices_of, keeps_nulls_out


@pytest.mark.parametrize(
    ("constraint", "choices"),
    [
        ("CHECK ((kind = ANY (ARRAY['a'::text, 'b'::text])))", ("a", "b")),
        (
            "CHECK (((kind)::text = ANY ((ARRAY['a'::character varying, 'it''s'::character varying])::text[])))",
            ("a", "it's"),
        ),
        ("CHECK (((VALUE)::text = ANY (ARRAY[('a'::character varying)::text, ('b'::varchar)::text])))", ("a", "b")),
        ("CHECK ((kind = ANY (ARRAY[('a'::character varying(10))::text, ('b'::character(10))::text])))", ("a", "b")),
        (
            "CHECK (((kind)::text = ANY ((ARRAY['cut'::character varying(2), 'b'::character varying])::text[])))",
            ("cu", "b"),
        ),
        ("CHECK ((kind = ('a'::character varying(10))::text))", ("a",)),
        ("CHECK ((n = ANY (ARRAY[(1)::bigint, ('-2'::integer)::bigint])))", (1, -2)),
        ("CHECK ((VALUE = 'only'::text))", ("only",)),
        ("CHECK ((n = ANY (ARRAY[1, 2, '-3'::integer])))", (1, 2, -3)),
        ("CHECK ((\"My kind\" = ANY (ARRAY['x, y'::text, 'x, y'::text])))", ("x, y",)),
        ("CHECK ((kind = ANY (ARRAY['a'::text, NULL::text])))", ()),
        ("CHECK (((kind = 'a'::text) OR (other = 'b'::text)))", ()),
        ("CHECK ((kind <> ALL (ARRAY['a'::text])))", ()),
        ("CHECK ((lower(kind) = ANY (ARRAY['a'::text])))", ()),
        ("CHECK ((n > 3))", ()),
    ],
)
def test_check_constraints_with_lists_give_the_allowed_values(constraint: str, choices: tuple[str | int, ...]) -> None:
    assert choices_of(constraint) == choices


def test_choices_of_char_are_padded_to_its_width() -> None:
    constraint = "CHECK ((kind = ANY (ARRAY['a'::bpchar, 'a '::bpchar, 'bcd'::bpchar, 'e    '::bpchar])))"
    assert choices_of(constraint, 3) == ("a  ", "bcd", "e  ")


@pytest.mark.parametrize(
    ("sql", "sure"),
    [
        ("select a.id from a join b using (id)", True),
        ("select lefty, unions from rightful", True),
        ("select a.id from a LEFT JOIN b on true", False),
        ("select id from a full join b using (id)", False),
        ("select id from a union all select null", False),
        ("select a, count(*) from t group by rollup (a)", False),
        ("merge into t using s on true when matched then delete returning t.id", False),
        ("update t set a = 1 returning old.a", False),
    ],
)
def test_statements_that_may_make_columns_null_are_detected(sql: str, sure: bool) -> None:
    assert keeps_nulls_out(sql) is sure
