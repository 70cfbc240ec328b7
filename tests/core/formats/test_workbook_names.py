"""Names of spreadsheets (formats-6 to formats-9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.formats.workbook_names import content_disposition, file_name, sheet_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Orders", "Orders.xlsx"),
        ("Orders.XLSX", "Orders.XLSX"),
        ("", "list_orders.xlsx"),
        ("  \t", "list_orders.xlsx"),
        ("a/b\\c", "a_b_c.xlsx"),
        ("new\r\nSet-Cookie: x", "newSet-Cookie: x.xlsx"),
    ],
)
def test_workbook_file_names_are_made_safe(text: str, name: str) -> None:
    assert file_name(text, "list_orders") == name


def test_a_routine_name_loses_its_quotes_and_slashes() -> None:
    assert file_name("", '"a/b"') == "a_b.xlsx"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Open orders", "Open orders"),
        ("", "list_orders"),
        ("a:b/c?d*e[f]g\\h", "a_b_c_d_e_f_g_h"),
        ("x" * 40, "x" * 31),
        ("\U0001f600" * 20, "\U0001f600" * 15),
        ("'quoted'", "_quoted_"),
        ("hIsToRy", "History_"),
    ],
)
def test_sheet_names_are_made_valid(text: str, name: str) -> None:
    assert sheet_name(text, "list_orders") == name


def test_a_sheet_always_has_a_valid_name() -> None:
    assert sheet_name("", " ") == "Sheet1"


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("a b.xlsx", 'attachment; filename="a b.xlsx"'),
        ('"q".xlsx', "attachment; filename=\"_q_.xlsx\"; filename*=UTF-8''%22q%22.xlsx"),
        ("Zürich.xlsx", "attachment; filename=\"Z_rich.xlsx\"; filename*=UTF-8''Z%C3%BCrich.xlsx"),
    ],
)
def test_content_disposition(name: str, header: str) -> None:
    assert content_disposition(name) == header


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_no_text_breaks_the_header(text: str) -> None:
    header = content_disposition(file_name(text, "f"))
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
