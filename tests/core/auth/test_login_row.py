"""The content of a login row (sign-in-14 to sign-in-20)."""

from __future__ import annotations

import pytest

from rowcall.core.auth.login import Cell, LoginRowError, claims_of, read_login_row, row_json, scheme_names
from rowcall.core.auth.options import LoginOptions

OPTIONS = LoginOptions()
BOOLEAN, SMALLINT, INTEGER, BIGINT, TEXT = 16, 21, 23, 20, 25


def cell(name: str, text: str | None, oid: int = TEXT, json: str = "null", is_array: bool = False) -> Cell:
    return Cell(name, oid, is_array, text, json)


def test_columns_without_a_special_meaning_are_claims() -> None:
    row = read_login_row([cell("user_id", "41", INTEGER), cell("depot", "north"), cell("hash", "x")], OPTIONS)
    assert row.claims == (("user_id", "41"), ("depot", "north"))
    assert row.hash == "x"
    assert row.status == 200


@pytest.mark.parametrize("name", ["Status", "STATUS", "status"])
def test_special_names_in_any_case(name: str) -> None:
    assert read_login_row([cell(name, "f", BOOLEAN)], OPTIONS).refused


def test_a_false_status_refuses_in_any_column() -> None:
    row = read_login_row([cell("user_id", "41"), cell("body", "x"), cell("status", "f", BOOLEAN)], OPTIONS)
    assert row.refused
    assert row.claims == ()
    assert row.body is None


@pytest.mark.parametrize("oid", [SMALLINT, INTEGER, BIGINT])
@pytest.mark.parametrize("status", [200, 202, 403, 500])
def test_an_integer_status_is_read(oid: int, status: int) -> None:
    row = read_login_row([cell("status", str(status), oid), cell("body", None)], OPTIONS)
    assert row.status == status
    assert not row.refused
    assert row.body == ""


@pytest.mark.parametrize(
    "status", [cell("status", "200"), cell("status", None, INTEGER), cell("status", "7", INTEGER), cell("status", None)]
)
def test_invalid_statuses(status: Cell) -> None:
    with pytest.raises(LoginRowError):
        read_login_row([status], OPTIONS)


def test_null_scheme_and_hash_are_absent() -> None:
    row = read_login_row([cell("scheme", None), cell("hash", None), cell("user_id", "1")], OPTIONS)
    assert row.scheme is None
    assert row.hash is None


def test_special_columns_can_have_other_names() -> None:
    options = LoginOptions(status="ok", hash="digest")
    row = read_login_row([cell("ok", "t", BOOLEAN), cell("digest", "x"), cell("status", "fine")], options)
    assert row.hash == "x"
    assert row.claims == (("status", "fine"),)


@pytest.mark.parametrize(
    ("value", "claims"),
    [
        (cell("a", None), [""]),
        (cell("a", None, 1009, is_array=True), [""]),
        (cell("a", "t", BOOLEAN), ["True"]),
        (cell("a", "f", BOOLEAN), ["False"]),
        (cell("a", "t"), ["t"]),
        (cell("a", "{}", 1009, is_array=True), []),
        (cell("a", "{x,NULL,y}", 1009, is_array=True), ["x", "", "y"]),
        (cell("a", "{1,2}", 1007, is_array=True), ["1", "2"]),
        (cell("a", "{t,f}", 1000, is_array=True), ["True", "False"]),
        (cell("a", "123456789012345678901.5", 1700), ["123456789012345678901.5"]),
        (cell("a", "[1,2]", 3802), ["[1,2]"]),
    ],
)
def test_claims_of_a_value(value: Cell, claims: list[str]) -> None:
    assert list(claims_of(value)) == [("a", claim) for claim in claims]


def test_the_row_as_json_hides_the_hash() -> None:
    cells = [cell("user_id", "41", json="41"), cell("hash", "x", json='"x"'), cell("Scheme", "a", json='"a"')]
    assert row_json(cells, OPTIONS, camel=True) == '{"userId":41,"Scheme":"a"}'
    assert row_json(cells, OPTIONS, camel=False) == '{"user_id":41,"Scheme":"a"}'


def test_scheme_names_of_a_logout() -> None:
    rows = [[cell("a", "x"), cell("b", None)], [cell("a", "{y,NULL,z}", 1009, is_array=True), cell("b", "")]]
    assert list(scheme_names(rows)) == ["x", "y", "z"]
