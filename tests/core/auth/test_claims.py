"""Claims in the forms in which routines receive them (access-12 to access-20)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.auth.claims import IdentityClaims, User, as_text, claims_json, group_claims, refreshed_claims
from rowcall.core.auth.required_roles import RequiredRoles
from rowcall.core.text.array_literal import elements, literal

IDENTITY = IdentityClaims()


def user(*claims: tuple[str, str]) -> User:
    return User(claims, IDENTITY, "Cookies")


@pytest.mark.parametrize(
    ("claims", "groups"),
    [
        ([("user_id", "41")], {"user_id": "41"}),
        ([("depot", "")], {"depot": None}),
        ([("user_roles", "boss")], {"user_roles": ["boss"]}),
        ([("USER_ROLES", "boss")], {"USER_ROLES": ["boss"]}),
        ([("user_roles", "boss"), ("user_roles", "gate")], {"user_roles": ["boss", "gate"]}),
        ([("user_roles", ""), ("user_roles", "gate")], {"user_roles": ["gate"]}),
        ([("user_roles", "")], {}),
        ([("depot", "a"), ("depot", "b"), ("depot", ""), ("depot", "c")], {"depot": ["a", "b", "c"]}),
        ([("depot", ""), ("depot", "b")], {"depot": None}),
        ([("b", "1"), ("a", "2"), ("b", "3")], {"b": ["1", "3"], "a": "2"}),
    ],
)
def test_claims_are_grouped_by_type(claims: list[tuple[str, str]], groups: dict[str, object]) -> None:
    result = group_claims(claims, "user_roles")
    assert result == groups
    assert list(result) == list(groups)


def test_json_keeps_order_and_non_ascii_text() -> None:
    groups = group_claims([("b", "ü<&>"), ("user_roles", "x"), ("a", "")], "user_roles")
    assert claims_json(groups).decode() == '{"b":"ü<&>","user_roles":["x"],"a":null}'


def test_json_without_claims() -> None:
    assert user().json == b"{}"


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1))
def test_a_list_survives_as_an_array_literal(values: list[str]) -> None:
    text = as_text(values)
    assert text is not None
    assert elements(text) == values


@given(st.lists(st.one_of(st.none(), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))))
def test_elements_is_the_inverse_of_literal(values: list[str | None]) -> None:
    assert elements(literal(list(values), quoted=True)) == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{}", []),
        ('{a,NULL,"NULL"}', ["a", None, "NULL"]),
        ("{{1,2},{3,4}}", ["1", "2", "3", "4"]),
        ('[0:1]={a,"b="}', ["a", "b="]),
        ("{a;b}", ["a;b"]),
        ('{""}', [""]),
    ],
)
def test_elements_of_literals_of_the_server(text: str, values: list[str | None]) -> None:
    assert elements(text) == values


def test_claims_are_converted_to_texts_and_arrays() -> None:
    known = user(("user_id", "41"), ("user_roles", 'a"b'), ("depot", ""))
    assert known.texts == {"user_id": b"41", "user_roles": b'{"a\\"b"}', "depot": None}
    assert known.arrays == {"user_id": b'{"41"}', "user_roles": b'{"a\\"b"}', "depot": None}
    assert json.loads(known.json) == {"user_id": "41", "user_roles": ['a"b'], "depot": None}


@pytest.mark.parametrize(
    ("values", "admitted"),
    [
        (["boss"], True),
        (["BOSS"], True),
        (["unknown", "gate"], True),
        (["41"], False),
        (["kiri"], False),
        (["user:41"], True),
        (["name:kiri"], True),
        (["name:Kiri"], False),
        (["user:kiri"], False),
        (["name:41"], False),
        (["user:boss"], False),
        (["Kiri"], False),
        (["unknown"], False),
        (["north"], False),
        ([""], False),
    ],
)
def test_roles_ids_and_names_are_matched_for_access(values: list[str], admitted: bool) -> None:
    """Roles match as written or in lower case, ids and names exactly and only with their prefix; no other claim matches
    (access-3)."""
    known = user(
        ("user_id", "41"), ("user_name", "kiri"), ("user_roles", "boss"), ("user_roles", "gate"), ("depot", "north")
    )
    assert RequiredRoles(values).admits(known) is admitted


def test_access_does_not_lower_claims() -> None:
    assert not RequiredRoles(["boss"]).admits(user(("user_roles", "Boss")))


def test_access_with_an_empty_identity() -> None:
    assert not RequiredRoles(["", "user:", "name:"]).admits(user(("user_id", ""), ("user_roles", "")))


@pytest.mark.parametrize(
    ("former", "expected"),
    [
        ([("user_id", "41")], [("user_id", "41"), ("amr", "pwd")]),
        ([("user_id", "41"), ("auth_time", "7")], [("user_id", "41"), ("amr", "pwd"), ("auth_time", "7")]),
        ([("user_id", "41"), ("amr", "otp")], [("user_id", "41"), ("amr", "pwd")]),
        (
            [("user_id", "41"), ("amr", "otp"), ("amr", "mfa"), ("depot", "1")],
            [("user_id", "41"), ("amr", "otp"), ("amr", "mfa")],
        ),
        ([("user_id", "42"), ("auth_time", "7"), ("amr", "mfa")], [("user_id", "41"), ("amr", "pwd")]),
    ],
    ids=["nothing", "time", "one factor", "two factors", "another user"],
)
def test_refreshed_session_retains_how_and_when_its_user_signed_in(
    former: list[tuple[str, str]], expected: list[tuple[str, str]]
) -> None:
    claims = (("user_id", "41"), ("auth_time", "99"), ("amr", "pwd"))
    assert refreshed_claims(claims, user(*former), IDENTITY) == tuple(expected)
