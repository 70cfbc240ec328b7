"""`encrypt` and `decrypt`: stored values, and values for callers (protection-8 to protection-13)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create table member (id int primary key, iban text, phones text[], note varchar, extra jsonb);
create type card as (number text, year int);
create table wallet (id int primary key, card card, cards card[]);

create function store(_id int, _iban text, _note varchar default null, _extra jsonb default null) returns void
    language sql as $$ insert into member (id, iban, note, extra) values (_id, _iban, _note, _extra)
    on conflict (id) do update set iban = excluded.iban, note = excluded.note $$;
comment on function store is 'HTTP POST
encrypt _iban';
create function store_all(_id int, _iban text, _note varchar, _extra jsonb) returns void language sql as
    $$ insert into member (id, iban, note, extra) values (_id, _iban, _note, _extra) $$;
comment on function store_all is 'HTTP POST
encrypt';
create function store_phones(_id int, _phones text[]) returns void language sql as
    $$ insert into member (id, phones) values (_id, _phones) $$;
comment on function store_phones is 'HTTP POST
encrypted phones';
create function seal(_value text) returns text language sql as $$ select _value $$;
comment on function seal is 'HTTP POST
protect';
create domain account as text check (value <> '');
create domain local_account as account;
create function seal_account(_account local_account, _day date) returns text language sql as
    $$ select _account::text || ' ' || _day $$;
comment on function seal_account is 'HTTP POST
encrypt';
create type holder as (account local_account, age int);
create function seal_holder(_holder holder) returns text language sql as $$ select _holder.account::text $$;
comment on function seal_holder is 'HTTP POST
encrypt';
create function keep_cards(_id int, _number text) returns void language sql as $$
    insert into wallet values (_id, (_number, 2030)::card, array[(_number, 1)::card, null, ('plain "x"', 2)::card]) $$;
comment on function keep_cards is 'HTTP POST
encrypt _number';

create function plain(_id int) returns setof member language sql stable as 'select * from member where id = _id';
comment on function plain is 'HTTP GET';
create function read_by_name(_id int) returns table (id int, iban text, note varchar) language sql stable as
    'select id, iban, note from member where id = _id';
comment on function read_by_name is 'HTTP GET
decrypt IBAN';
create function read_all(_id int) returns setof member language sql stable as 'select * from member where id = _id';
comment on function read_all is 'HTTP GET
decrypt';
create function read_converted(_id int) returns table (id int, card_no text) language sql stable as
    'select id, iban from member where id = _id';
comment on function read_converted is 'HTTP GET
decrypt card_no';
create function read_scalar(_id int) returns text language sql stable as 'select iban from member where id = _id';
comment on function read_scalar is 'HTTP GET
decrypt something_else';
create function read_set() returns setof text language sql stable as 'select iban from member order by id';
comment on function read_set is 'HTTP GET
unprotect';
create function read_raw(_id int) returns table (id int, iban text) language sql stable as
    'select id, iban from member where id = _id';
comment on function read_raw is 'HTTP GET
decrypt
raw
separator ,';
create function read_page(_id int) returns table (id int, iban text) language sql stable as
    'select id, iban from member where id = _id';
comment on function read_page is 'HTTP GET
decrypt
table_format html';
create function read_wallet(_id int) returns setof wallet language sql stable as
    'select * from wallet where id = _id';
comment on function read_wallet is 'HTTP GET
nested
decrypt';
create function wrong_name(_iban text) returns text language sql as $$ select _iban $$;
comment on function wrong_name is 'HTTP POST
encrypt _nothing';
"""
SECRET = 'XX12 "ж" {a,b}\\'


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {"Service:TableFormatOptions:Enabled": "true", "Service:TableFormatOptions:HtmlHeader": ""}
    return serve(database, SQL, settings, workers=2)


def test_database_receives_only_ciphertext(service: Service, database: Database) -> None:
    assert service.post("/api/store", json={"id": 1, "iban": SECRET, "note": "open"}).status_code == 204
    iban, note = database.fetch("select iban, note from member where id = 1")[0]
    assert SECRET not in iban
    assert note == "open"
    assert service.get("/api/plain?id=1").json()[0]["iban"] == iban
    row = {"id": 1, "iban": SECRET, "note": "open"}
    assert service.get("/api/read-by-name?id=1").json() == [row]
    assert service.get("/api/read-converted?id=1").json() == [{"id": 1, "cardNo": SECRET}]


def test_equal_values_have_different_ciphertexts(service: Service) -> None:
    first, second = (service.post("/api/seal", json={"value": "same"}).text for _ in range(2))
    assert first != second
    assert len(first) == len(second)


def test_encrypt_without_names_applies_to_text_parameters_only(service: Service, database: Database) -> None:
    body = {"id": 2, "iban": "A", "note": "B", "extra": {"c": 1}}
    assert service.post("/api/store-all", json=body).status_code == 204
    iban, note, extra = database.fetch("select iban, note, extra from member where id = 2")[0]
    assert "A" not in (iban, note)
    assert note != "B"
    assert extra == {"c": 1}
    document = service.get("/api/read-all?id=2").json()
    assert document == [{"id": 2, "iban": "A", "phones": None, "note": "B", "extra": {"c": 1}}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/seal-account", {"account": "XX12", "day": "2030-01-02"}),
        ("/api/seal-holder", {"holderAccount": "XX12", "holderAge": 7}),
    ],
)
def test_text_domains_are_encrypted_as_text(service: Service, path: str, body: dict[str, object]) -> None:
    response = service.post(path, json=body)
    assert response.status_code == 200, response.text
    sealed, _, day = response.text.partition(" ")
    assert len(sealed) > 40
    assert day == body.get("day", "")


def test_null_stays_null_and_empty_text_is_encrypted(service: Service, database: Database) -> None:
    service.post("/api/store", json={"id": 3, "iban": None})
    service.post("/api/store", json={"id": 4, "iban": ""})
    assert database.value("select iban is null from member where id = 3")
    assert database.value("select length(iban) from member where id = 4") > 40
    assert service.get("/api/read-by-name?id=3").json() == [{"id": 3, "iban": None, "note": None}]
    assert service.get("/api/read-by-name?id=4").json() == [{"id": 4, "iban": "", "note": None}]


def test_array_elements_are_encrypted_separately(service: Service, database: Database) -> None:
    phones = ["1 2", None, "", 'a"b,{}']
    service.post("/api/store-phones", json={"id": 5, "phones": phones})
    stored = database.value("select phones from member where id = 5")
    assert stored[1] is None
    assert not set(stored) & {"1 2", "", 'a"b,{}'}
    assert service.get("/api/read-all?id=5").json()[0]["phones"] == phones


@pytest.mark.parametrize("text", ['{"a}', "{a}{b}", "{{a},b}", "{a,,b}", '{a"b"}', "{" * 3000 + "}"])
def test_an_invalid_array_literal_to_encrypt_is_a_bad_request(service: Service, text: str) -> None:
    response = service.post("/api/store-phones", json={"id": 7, "phones": text})
    assert response.status_code == 400, response.text
    assert response.json()["detail"].startswith("parameter 'phones' (text[]): the value cannot be used")


def test_elements_of_an_array_literal_are_encrypted_as_postgresql_reads_them(service: Service) -> None:
    text = '{ a b , NuLL, "null",c\\,d, \\{}'
    assert service.post("/api/store-phones", json={"id": 8, "phones": text}).status_code == 204
    assert service.get("/api/read-all?id=8").json()[0]["phones"] == ["a b", None, "null", "c,d", "{"]


def test_attributes_of_composites_are_decrypted(service: Service, database: Database) -> None:
    service.post("/api/keep-cards", json={"id": 1, "number": SECRET})
    assert SECRET not in database.value("select wallet::text from wallet where id = 1")
    assert service.get("/api/read-wallet?id=1").json() == [
        {
            "id": 1,
            "card": {"number": SECRET, "year": 2030},
            "cards": [{"number": SECRET, "year": 1}, None, {"number": 'plain "x"', "year": 2}],
        }
    ]


def test_a_value_that_cannot_be_decrypted_is_returned_unchanged(service: Service, database: Database) -> None:
    service.post("/api/store", json={"id": 6, "iban": "fine"})
    sealed = database.value("select iban from member where id = 6")
    changed = sealed[:-1] + ("A" if sealed[-1] != "A" else "B")
    for iban in ("plain text", changed, sealed[:-4], "A" * 80, sealed + sealed):
        database.execute(f"update member set iban = '{iban}' where id = 6")
        response = service.get("/api/read-all?id=6")
        assert (response.status_code, response.json()[0]["iban"]) == (200, iban)


def test_single_value_is_decrypted_regardless_of_column_names(service: Service) -> None:
    service.post("/api/store", json={"id": 7, "iban": SECRET})
    assert service.get("/api/read-scalar?id=7").text == SECRET


def test_sets_raw_text_and_html_are_decrypted(service: Service, database: Database) -> None:
    database.execute("delete from member")
    service.post("/api/store", json={"id": 8, "iban": "a,b"})
    assert service.get("/api/read-set").json() == ["a,b"]
    assert service.get("/api/read-raw?id=8").text == '8,"a,b"'
    assert "<td>a,b</td>" in service.get("/api/read-page?id=8").text


def test_every_worker_decrypts_values_of_other_workers(service: Service) -> None:
    service.post("/api/store", json={"id": 9, "iban": SECRET})
    for _ in range(20):
        # A new connection each time: any worker may accept it.
        response = service.request("GET", "/api/read-scalar?id=9", headers={"Connection": "close"})
        assert response.text == SECRET


def test_an_endpoint_that_encrypts_an_unknown_parameter_is_left_out(service: Service) -> None:
    assert service.post("/api/wrong-name", json={"iban": "x"}).status_code == 404
    service.wait_for_log("the routine has no parameter _nothing")


def test_in_memory_keys_are_logged(service: Service) -> None:
    service.wait_for_log("keys that end with this process")


def test_values_are_not_encrypted_without_data_protection(own_database: Database, serve_once: Serve) -> None:
    """Keys of one process only would make values that can never be decrypted."""
    service = serve_once(own_database, SQL, {"DataProtection:Enabled": "false"})
    assert service.post("/api/store", json={"id": 1, "iban": "XX12"}).status_code == 204
    assert own_database.value("select iban from member") == "XX12"
    assert service.get("/api/read-by-name?id=1").json() == [{"id": 1, "iban": "XX12", "note": None}]
    assert "encrypt and decrypt do nothing" in service.log


@pytest.mark.slow
def test_values_stay_decryptable_after_a_restart(own_database: Database, serve_once: Serve, tmp_path: Path) -> None:
    settings = {"DataProtection:Storage": "FileSystem", "DataProtection:FileSystemPath": str(tmp_path / "keys")}
    settings["ApplicationName"] = "members"  # not that of the folder in which it runs
    first = serve_once(own_database, SQL, settings)
    first.post("/api/store", json={"id": 1, "iban": SECRET})
    first.stop()
    second = serve_once(own_database, "", settings)
    assert second.get("/api/read-scalar?id=1").text == SECRET
    assert "keys that end with this process" not in second.log
