"""Names for SQL, URLs and JSON keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.text.naming import (
    api_name,
    camel_case,
    default_path,
    parameter_name,
    path_prefix,
    quote_identifier,
    quote_qualified,
)


@pytest.mark.parametrize(
    ("name", "quoted"), [("id", '"id"'), ("MyCol", '"MyCol"'), ('a"b', '"a""b"'), ("select", '"select"')]
)
def test_identifiers_are_always_quoted(name: str, quoted: str) -> None:
    assert quote_identifier(name) == quoted


@given(st.text())
def test_a_quoted_identifier_never_ends_early(name: str) -> None:
    inside = quote_identifier(name)[1:-1]
    assert '"' not in inside.replace('""', "")


def test_qualified_names_quote_both_parts() -> None:
    assert quote_qualified("Odd Name", "f") == '"Odd Name"."f"'


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("_user_id", "userId"),
        ("_total__amount_", "totalAmount"),
        ("_hello__world", "helloWorld"),
        ("a1_2b", "a12b"),
        ("id", "id"),
        ("___", ""),
        ("from", "from"),
        ("MyParam", "MyParam"),
        ("MyCol", "MyCol"),
        ("Mixed Name", "Mixed Name"),
        ("My_col", "MyCol"),
        ("größe", "größe"),
    ],
)
def test_api_names(name: str, key: str) -> None:
    assert api_name(name) == key


def test_api_names_are_unchanged_if_camel_case_is_off() -> None:
    assert api_name("_user_id", camel=False) == "_user_id"


@pytest.mark.parametrize(
    ("name", "key"), [("MyCol", "myCol"), ("URLPath", "uRLPath"), ("ID", "iD"), ("_hello__World", "helloWorld")]
)
def test_unquoted_names_begin_with_a_lower_case_letter(name: str, key: str) -> None:
    assert camel_case(name) == key


@pytest.mark.parametrize(("name", "key"), [(None, "$2"), ("", "$2"), ("_", "$2"), ("_a", "a")])
def test_a_parameter_without_a_name_has_its_number(name: str | None, key: str) -> None:
    assert parameter_name(name, 2) == key


@pytest.mark.parametrize(
    ("schema", "name", "path"),
    [
        ("public", "list_open_orders", "/api/list-open-orders"),
        ("billing_eu", "get_invoice", "/api/billing-eu/get-invoice"),
        ("public", "Mixed Name", "/api/mixed-name"),
        ("public", "_hidden", "/api/-hidden"),
        ("", "x", "/api/x"),
    ],
)
def test_default_paths(schema: str, name: str, path: str) -> None:
    assert default_path(schema, name) == path


@pytest.mark.parametrize(
    ("prefix", "path"),
    [(None, "/api/s/f"), ("", "/s/f"), ("/My_Api/v1/", "/my-api/v1/s/f"), ("rpc", "/rpc/s/f"), ("/", "/s/f")],
)
def test_the_prefix_is_converted_like_the_rest_of_the_path(prefix: str | None, path: str) -> None:
    assert default_path("s", "f", prefix) == path
    assert f"{path_prefix(prefix)}/s/f" == path


def test_paths_keep_case_and_underscores_without_kebab_case() -> None:
    assert default_path("My_Schema", "Get_It", kebab=False) == "/api/My_Schema/Get_It/"
    assert path_prefix("My_Api/", kebab=False) == "/My_Api"
