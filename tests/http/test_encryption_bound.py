"""Encrypted values are bound to the column of a table, or to a name (`encrypt _iban as NAME`): a ciphertext that is
copied to another column is not decrypted there."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

pytestmark = pytest.mark.attack

SQL = """
create table client (id int primary key, iban text, notes text, phones text[]);
comment on table client is 'HTTP
encrypt iban notes phones
decrypt';
create view client_view as select id, iban from client;
comment on view client_view is 'HTTP
encrypt iban
decrypt';
create table "Odd Client" (id int primary key, iban text);
comment on table "Odd Client" is 'HTTP
encrypt iban as public.client.iban
decrypt iban as PUBLIC.client.IBAN';

create function store(_id int, _iban text) returns void language sql as
    'insert into client (id, iban) values (_id, _iban)';
comment on function store is 'HTTP POST
encrypt _iban';
create function store_bound(_id int, _iban text, _notes text) returns void language sql as
    'insert into client (id, iban, notes) values (_id, _iban, _notes)';
comment on function store_bound is 'HTTP POST
encrypt _iban as public.client.iban, _notes
param _iban number';
create function seal_all(_a text, _b text) returns text[] language sql as 'select array[_a, _b]';
comment on function seal_all is 'HTTP POST
encrypt as secrets';

create function read(_id int) returns table (iban text, notes text) language sql stable as
    'select iban, notes from client where id = _id';
comment on function read is 'HTTP GET
decrypt';
create function read_one(_id int) returns text language sql stable as 'select iban from client where id = _id';
comment on function read_one is 'HTTP GET
decrypt';
create function read_bound(_id int) returns table (iban text, notes text) language sql stable as
    'select iban, notes from client where id = _id';
comment on function read_bound is 'HTTP GET
decrypt iban as public.client.iban notes as public.client.notes';
create function open_secrets(_a text[]) returns setof text language sql immutable as 'select unnest(_a)';
comment on function open_secrets is 'HTTP POST
decrypt as secrets';
create function open_others(_a text[]) returns setof text language sql immutable as 'select unnest(_a)';
comment on function open_others is 'HTTP POST
decrypt as others';
"""
FILES = {
    "read_file.sql": "-- HTTP GET\n-- decrypt\nselect iban as code, notes from client where id = :id::int",
    "read_file_other.sql": "-- HTTP GET\n-- decrypt code as other\nselect iban as code from client where id = :id::int",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    return serve(database, SQL, {**file_settings(folder), "Service:CrudSource:Enabled": "true"})


def insert(service: Service, **values: object) -> None:
    response = service.request("PUT", "/api/client", json=values)
    assert response.status_code == 204, response.text


def row(service: Service, number: int) -> dict[str, object]:
    (result,) = service.get("/api/client", params={"id": number}).json()
    return dict(result)


def stored(database: Database, number: int) -> tuple[str, str]:
    iban, notes = database.fetch(f"select iban, notes from client where id = {number}")[0]
    return iban, notes


def test_table_value_is_decrypted_by_tables_views_files_and_functions(service: Service, database: Database) -> None:
    """By the table, by views over it, by files, and by functions, whose columns have no known origin."""
    insert(service, id=1, iban="XX1", notes="open", phones=["1", None])
    assert not {"XX1", "open"} & set(stored(database, 1))
    expected = {"id": 1, "iban": "XX1", "notes": "open", "phones": ["1", None]}
    assert row(service, 1) == expected
    assert service.get("/api/client-view?id=1").json() == [{"id": 1, "iban": "XX1"}]
    assert service.get("/api/read-file?id=1").json() == [{"code": "XX1", "notes": "open"}]
    for path in ("read", "read-bound"):
        assert service.get(f"/api/{path}?id=1").json() == [{"iban": "XX1", "notes": "open"}]
    assert service.get("/api/read-one?id=1").text == "XX1"
    changed = service.post("/api/client/returning", json={"id": 1, "iban": "XX2"}).json()
    assert changed == [{**expected, "iban": "XX2"}]


def test_ciphertexts_swapped_between_columns_are_refused(service: Service, database: Database) -> None:
    insert(service, id=2, iban="XX1", notes="open", phones=["1"])
    iban, notes = stored(database, 2)
    database.execute("update client set iban = notes, notes = iban where id = 2")
    assert (row(service, 2)["iban"], row(service, 2)["notes"]) == (notes, iban)
    assert service.get("/api/read-file?id=2").json() == [{"code": notes, "notes": iban}]
    assert service.get("/api/read-bound?id=2").json() == [{"iban": notes, "notes": iban}]
    database.execute("update client set notes = phones[1] where id = 2")
    assert str(row(service, 2)["notes"]).startswith("B")


def test_a_ciphertext_under_the_identifier_of_another_column_is_refused(service: Service, database: Database) -> None:
    """The identifier is authenticated."""
    insert(service, id=3, iban="XX1", notes="open")
    iban, notes = stored(database, 3)
    forged = iban[:11] + notes[11:]
    for text in (forged, iban[11:], iban[:11], iban[:-1], "B" * 90, iban[:11] + iban):
        database.execute(f"update client set iban = '{text}' where id = 3")
        assert row(service, 3)["iban"] == text
        assert service.get("/api/read?id=3").json() == [{"iban": text, "notes": "open"}]


def test_unbound_values_are_still_decrypted(service: Service, database: Database) -> None:
    """Values from before bindings existed, and those of routines without a name, have the same form."""
    assert service.post("/api/store", json={"id": 4, "iban": "XX1"}).status_code == 204
    assert stored(database, 4)[0].startswith("A")
    assert row(service, 4)["iban"] == "XX1"
    assert service.get("/api/read-file?id=4").json() == [{"code": "XX1", "notes": None}]
    assert service.get("/api/read-file-other?id=4").json() == ["XX1"]
    assert service.get("/api/read-bound?id=4").json() == [{"iban": "XX1", "notes": None}]


def test_values_written_through_a_view_are_unbound(service: Service, database: Database) -> None:
    """Its column belongs to the underlying table, which can decrypt it."""
    assert service.request("PUT", "/api/client-view", json={"id": 5, "iban": "XX1"}).status_code == 204
    assert stored(database, 5)[0].startswith("A")
    assert row(service, 5)["iban"] == "XX1"


def test_routine_and_table_can_share_a_binding_name(service: Service, database: Database) -> None:
    """Also if a later line renames the parameter."""
    assert service.post("/api/store-bound", json={"id": 6, "number": "XX1", "notes": "open"}).status_code == 204
    iban, notes = stored(database, 6)
    assert (iban[0], notes[0]) == ("B", "A")
    assert (row(service, 6)["iban"], row(service, 6)["notes"]) == ("XX1", "open")
    database.execute("update client set notes = iban where id = 6")
    assert row(service, 6)["notes"] == iban
    assert service.get("/api/read-file-other?id=6").json() == [iban]


def test_tables_can_share_a_binding_name(service: Service, database: Database) -> None:
    insert(service, id=7, iban="XX1", notes="open")
    database.execute('insert into "Odd Client" select id, iban from client where id = 7')
    assert service.get("/api/odd-client?id=7").json() == [{"id": 7, "iban": "XX1"}]
    database.execute('update "Odd Client" set iban = (select notes from client where client.id = 7) where id = 7')
    assert service.get("/api/odd-client?id=7").json() == [{"id": 7, "iban": stored(database, 7)[1]}]


def test_binding_name_applies_to_all_values_of_a_routine(service: Service) -> None:
    sealed = service.post("/api/seal-all", json={"a": "first", "b": "second"}).json()
    assert [text[0] for text in sealed] == ["B", "B"]
    assert service.post("/api/open-secrets", json={"a": sealed}).json() == ["first", "second"]
    assert service.post("/api/open-others", json={"a": sealed}).json() == sealed
