"""`param … is merge patch`: a routine distinguishes missing members from null ones (RFC 7396)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create table person (id int primary key, name text, email text, age int);
insert into person values (1, 'Ann', 'ann@example.com', 30), (2, 'Ben', 'ben@example.com', 40);
create function change_person(_id int, _changes jsonb, _note text default null) returns person language sql as $$
  update person set
    name = case when _changes ? 'name' then _changes ->> 'name' else name end,
    email = case when _changes ? 'email' then _changes ->> 'email' else email end,
    age = case when _changes ? 'age' then (_changes ->> 'age')::int else age end
  where id = _id returning * $$;
comment on function change_person(int, jsonb, text) is 'HTTP PATCH /persons/{_id}
param _changes is merge patch';
create function echo(_patch json, _n int default 0) returns json language sql as
$$ select json_build_object('patch', _patch, 'n', _n) $$;
comment on function echo(json, int) is 'HTTP POST /echo
param _patch is merge patch';
create function patched(_id int, _changes jsonb) returns json language sql as
$$ select json_build_object('id', _id, 'changes', _changes) $$;
comment on function patched(int, jsonb) is 'HTTP PATCH /patched/{_id}
param _changes is merge patch';
create function renamed(_changes jsonb) returns jsonb language sql as $$ select _changes $$;
comment on function renamed(jsonb) is 'HTTP POST /renamed
param _changes is merge patch
param _changes patch';
create function amend(_id int, _patch jsonb) returns text language sql as $$ select 'patch ' || _patch::text $$;
comment on function amend(int, jsonb) is 'HTTP PATCH /amend/{_id}
param _patch is merge patch';
create function amend(_id int, _name text, _at date) returns text language sql as $$ select 'name ' || _name $$;
comment on function amend(int, text, date) is 'HTTP PATCH /amend/{_id}';
create function wrong(_patch text) returns text language sql as $$ select _patch $$;
comment on function wrong(text) is 'HTTP POST /wrong
param _patch is merge patch';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {"Service:RequiresAuthorization": "false"})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"email": None}, {"id": 1, "name": "Ann", "email": None, "age": 31}),
        ({"name": "Anna", "age": 32}, {"id": 1, "name": "Anna", "email": "ann@example.com", "age": 32}),
        ({}, {"id": 1, "name": "Ann", "email": "ann@example.com", "age": 31}),
        ({"note": "not a change", "age": None}, {"id": 1, "name": "Ann", "email": "ann@example.com", "age": None}),
        ({"changes": {"name": "Anna"}, "age": 5}, {"id": 1, "name": "Anna", "email": "ann@example.com", "age": 5}),
    ],
)
def test_missing_and_null_members_are_distinguished(
    service: Service, database: Database, body: dict[str, Any], expected: dict[str, Any]
) -> None:
    database.execute("update person set name = 'Ann', email = 'ann@example.com', age = 31 where id = 1")
    response = service.request(
        "PATCH", "/persons/1", json=body, headers={"content-type": "application/merge-patch+json"}
    )
    assert (response.status_code, response.json()) == (200, expected), response.text


def test_members_of_a_patch_select_its_overload(service: Service) -> None:
    assert (
        service.request("PATCH", "/amend/1", json={"age": 3, "email": None}).text == 'patch {"age": 3, "email": null}'
    )
    assert service.request("PATCH", "/amend/1", json={"name": "x", "at": "2026-01-02"}).text == "name x"


def test_nested_nulls_are_passed_to_the_routine(service: Service) -> None:
    """The routine applies the patch, so nothing of it is removed before."""
    patch: dict[str, Any] = {
        "address": {"city": None, "street": {"name": "x", "number": None}},
        "tags": None,
        "list": [None, {}],
    }
    headers = {"content-type": "application/merge-patch+json"}
    assert service.post("/echo", json={**patch, "n": 1}, headers=headers).json() == {"patch": patch, "n": 1}


def test_a_member_named_like_a_path_parameter_is_no_part_of_the_patch(service: Service) -> None:
    response = service.request("PATCH", "/patched/7", json={"id": 8, "title": None})
    assert response.json() == {"id": 7, "changes": {"title": None}}


def test_a_renamed_parameter_gets_the_members(service: Service) -> None:
    assert service.post("/renamed", json={"a": 1, "patch": {"b": None}}).json() == {"a": 1, "b": None}


def test_members_are_passed_unchanged(service: Service) -> None:
    body = '{"a": 1.50, "n": 7, "big": 12345678901234567890.5, "\\u0061b": {"x": [null, "é"]}}'
    response = service.post("/echo", content=body.encode(), headers={"content-type": "application/json"})
    assert response.text == ('{"patch" : {"a":1.50,"big":12345678901234567890.5,"ab":{"x": [null, "é"]}}, "n" : 7}'), (
        response.text
    )
    assert service.post("/echo").json() == {"patch": {}, "n": 0}


def test_concurrent_patches_preserve_the_members_of_each_other(database: Database, serve: Serve) -> None:
    sql = """
create table document (id int primary key, content jsonb);
insert into document values (1, '{}');
create function change_document(_id int, _changes jsonb) returns void language sql as
$$ update document set content = content || _changes where id = _id $$;
comment on function change_document(int, jsonb) is 'HTTP PATCH /documents/{_id}
param _changes is merge patch';
"""
    service = serve(database, sql, {"Service:RequiresAuthorization": "false"}, workers=2)

    def change(number: int) -> int:
        return service.request_once("PATCH", "/documents/1", json={f"m{number}": number}).status_code

    # Each request has a connection of its own, so both workers serve them.
    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(change, range(32))) == {204}
    assert database.value("select content from document") == {f"m{number}": number for number in range(32)}


def test_invalid_patches_are_refused_and_annotations_reported(service: Service) -> None:
    for body in ('{"a": 1', "[1]", '{"a": 1, "a": 2}', '{"patch": 5}'):
        problem(service.post("/echo", content=body, headers={"content-type": "application/json"}), 400)
    assert "_patch is no merge patch: its type has to be json or jsonb" in service.log
