"""A NULL as the whole response: empty, the word NULL, nothing at all, or `null` where the response is JSON
(discovery-6, discovery-15, binding-17, rendering-15, logging-8,
rendering-15 to rendering-17)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import BYTES, JSON, TEXT, answer
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
create function null_text() returns text language sql stable as 'select null::text';
create function null_json() returns json language sql stable as 'select null::json';
create function null_array() returns int[] language sql stable as 'select null::int[]';
create function null_bytes() returns bytea language sql stable as 'select null::bytea';
create function null_jsonb() returns jsonb language sql stable as 'select null::jsonb';
create function null_json_empty() returns json language sql stable as 'select null::json';
create function null_json_raw() returns json language sql stable as 'select null::json';
create function null_json_as_html() returns json language sql stable as 'select null::json';
create function no_first_value() returns setof int language sql stable as 'select 1 where false';
create function no_first_object() returns table(a int) language sql stable as 'select 1 where false';
create function no_first_empty() returns setof int language sql stable as 'select 1 where false';
create function in_rows() returns setof text language sql stable as 'select null::text';
comment on function by_default() is 'HTTP';
comment on function as_empty() is E'HTTP\\ntext_response_null_handling empty_string';
comment on function as_literal() is E'HTTP\\n@text_response_null_handling null_literal';
comment on function as_nothing() is E'HTTP\\nresponse_null_handling 204';
comment on function array_literal() is E'HTTP\\nresponse_null null';
comment on function no_first_row() is E'HTTP\\nsingle\\ntext_response_null_handling no_content';
comment on function misspelt() is E'HTTP\\ntext_response_null_handling nothing_at_all';
comment on function null_text() is 'HTTP';
comment on function null_json() is 'HTTP';
comment on function null_array() is 'HTTP';
comment on function null_jsonb() is 'HTTP';
comment on function null_json_empty() is E'HTTP\\nnull_handling empty_string';
comment on function null_json_raw() is E'HTTP\\nraw';
comment on function null_json_as_html() is E'HTTP\\nContent-Type: text/html';
comment on function null_bytes() is 'HTTP';
comment on function no_first_value() is E'HTTP\\nsingle';
comment on function no_first_object() is E'HTTP\\nsingle';
comment on function no_first_empty() is E'HTTP\\nsingle\\nnull_handling empty_string';
comment on function in_rows() is E'HTTP\\ntext_response_null_handling no_content';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    openapi = "Service:OpenApiOptions:"
    settings = {f"{openapi}Enabled": "true", f"{openapi}FileName": "", f"{openapi}SpecVersion": "3.1"}
    return serve(database, SQL, settings)


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
def test_annotation_has_precedence_for_null_text(
    service: Service, routine: str, expected: tuple[int, str | None, str]
) -> None:
    assert answer(service.get(f"/api/{routine}")) == expected


def test_a_misspelt_value_is_reported(service: Service) -> None:
    service.wait_for_log("nothing_at_all")


NULLS = [
    ("null-text", TEXT, "NULL"),
    ("null-json", JSON, "NULL"),
    ("null-jsonb", JSON, "NULL"),
    ("null-array", JSON, "NULL"),
    ("null-bytes", BYTES, "NULL"),
    ("no-first-value", JSON, "null"),
    ("no-first-object", JSON, "null"),
]
"""Routine, its content type, and what a literal NULL is there: in a row of JSON only null would do."""


def test_by_default_a_null_is_json_null_in_json_and_empty_elsewhere(service: Service) -> None:
    for routine, content_type, _ in NULLS:
        body = "null" if content_type == JSON else ""
        assert answer(service.get(f"/api/{routine}")) == (200, content_type, body), routine
    assert answer(service.get("/api/null-json-raw")) == (200, JSON, "")
    assert answer(service.get("/api/null-json-as-html")) == (200, "text/html", "")


def test_openapi_declares_the_null_of_a_json_scalar(service: Service) -> None:
    def schema(routine: str) -> object:
        operation = service.get("/openapi.json").json()["paths"][f"/api/{routine}"]["get"]
        return operation["responses"]["200"]["content"][JSON]["schema"]

    items = {"type": ["integer", "null"], "format": "int32"}
    assert schema("null-array") == {"type": ["array", "null"], "items": items}
    assert schema("array-literal") == {"type": "array", "items": items}
    assert schema("null-json") == {}


def test_the_annotation_restores_the_empty_body(service: Service) -> None:
    assert answer(service.get("/api/no-first-empty")) == (200, JSON, "")
    assert answer(service.get("/api/null-json-empty")) == (200, JSON, "")


def test_a_key_restores_the_empty_body_in_json(database: Database, service: Service, serve: Serve) -> None:
    """`service` loads the functions."""
    empty = serve(database, settings={"Service:EmptyBodyWithoutRow": "true"})
    for routine in ("no-first-object", "no-first-value", "null-json", "null-jsonb", "null-array"):
        assert answer(empty.get(f"/api/{routine}")) == (200, JSON, ""), routine


def test_the_configured_null_literal_applies_without_an_annotation(
    database: Database, service: Service, serve: Serve
) -> None:
    """The fixture `service` loads the functions."""
    literal = serve(database, settings={"Service:TextResponseNullHandling": "NullLiteral"})
    for routine, content_type, word in NULLS:
        assert answer(literal.get(f"/api/{routine}")) == (200, content_type, word), routine
    assert answer(literal.get("/api/as-empty")) == (200, TEXT, "")
    assert answer(literal.get("/api/as-nothing")) == (204, None, "")
    assert answer(literal.get("/api/in-rows")) == (200, JSON, "[null]")


def test_the_configured_no_content_applies_without_an_annotation(
    database: Database, service: Service, serve: Serve
) -> None:
    """The fixture `service` loads the functions."""
    strict = serve(database, settings={"Service:TextResponseNullHandling": "NoContent"})
    for routine, *_ in NULLS:
        assert answer(strict.get(f"/api/{routine}")) == (204, None, ""), routine
    assert answer(strict.get("/api/as-empty")) == (200, TEXT, "")
    assert answer(strict.get("/api/as-literal")) == (200, TEXT, "NULL")
    assert answer(strict.get("/api/in-rows")) == (200, JSON, "[null]")
