"""A NULL that would be plain text: empty, the word NULL, or nothing at all (spec 2.12, reference 02, 6)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, TEXT, answer
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function by_default() returns text language sql stable as 'select null::text';
create function as_empty() returns text language sql stable as 'select null::text';
create function as_literal() returns text language sql stable as 'select null::text';
create function as_nothing() returns text language sql stable as 'select null::text';
create function array_literal() returns int[] language sql stable as 'select null::int[]';
create function no_first_row() returns setof int language sql stable as 'select 1 where false';
create function misspelt() returns text language sql stable as 'select null::text';
create function in_rows() returns setof text language sql stable as 'select null::text';
comment on function by_default() is 'HTTP';
comment on function as_empty() is E'HTTP\\ntext_response_null_handling empty_string';
comment on function as_literal() is E'HTTP\\n@text_response_null_handling null_literal';
comment on function as_nothing() is E'HTTP\\nresponse_null_handling 204';
comment on function array_literal() is E'HTTP\\nresponse_null null';
comment on function no_first_row() is E'HTTP\\nsingle\\ntext_response_null_handling no_content';
comment on function misspelt() is E'HTTP\\ntext_response_null_handling nothing_at_all';
comment on function in_rows() is E'HTTP\\ntext_response_null_handling no_content';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL)


@pytest.mark.parametrize(
    ("routine", "expected"),
    [
        ("by-default", (200, TEXT, "")),
        ("as-empty", (200, TEXT, "")),
        ("as-literal", (200, TEXT, "NULL")),
        ("as-nothing", (204, None, "")),
        ("array-literal", (200, JSON, "NULL")),
        ("no-first-row", (204, None, "")),
        ("misspelt", (200, TEXT, "")),
        ("in-rows", (200, JSON, "[null]")),
    ],
)
def test_annotation_decides(service: Service, routine: str, expected: tuple[int, str | None, str]) -> None:
    assert answer(service.get(f"/api/{routine}")) == expected


def test_misspelt_value_is_warned_of(service: Service) -> None:
    service.wait_for_log("nothing_at_all")


def test_configuration_decides_for_the_rest(database: Database, service: Service, serve: Serve) -> None:
    """`service` is asked for only because it loads the functions."""
    strict = serve(database, settings={"Service:TextResponseNullHandling": "NoContent"})
    assert answer(strict.get("/api/by-default")) == (204, None, "")
    assert answer(strict.get("/api/as-empty")) == (200, TEXT, "")
