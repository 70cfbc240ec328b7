"""`encrypt` and `decrypt`, rule by rule (protection-8 to protection-13).

Routines return the form of the value that they received: `plain` for a value as it was sent, `sealed` for another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check, check_in_order
from tests.harness.routines import Routine, routines
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

SEEN = """
create function seen(_value text) returns text language sql immutable as $$
    select case when _value is null then 'null' when length(_value) >= 60 and _value !~ '[^A-Za-z0-9_-]' then 'sealed'
        else 'plain ' || _value end $$;
create table vault (id int primary key, secret text, note text, extra jsonb);
create table chest (id int primary key, secret text, note text);
comment on table chest is 'HTTP
encrypt secret
decrypt secret';
create type card as (number text, year int);
create table counter (calls int); insert into counter values (0);
"""

OPENS = "HTTP GET\ndecrypt"
TWO = "(_a text, _b text default null) returns text stable"
BOTH = "select seen(_a) || '|' || seen(_b)"
ONE = "(_a text) returns text stable"
SEES = "select seen(_a)"
TABLE = "returns table (id int, card_no text, plain text)"
READ = "select id, secret, note from vault where id = _id"

ROUTINES: list[Routine] = [
    # which values, under every name of the annotation
    (f"seal_encrypt{TWO}", BOTH, "HTTP\nencrypt"),
    (f"seal_encrypted{TWO}", BOTH, "HTTP\nencrypted"),
    (f"seal_protect{TWO}", BOTH, "HTTP\nprotect"),
    (f"seal_protected{TWO}", BOTH, "HTTP\nprotected"),
    (f"seal_at{TWO}", BOTH, "HTTP\n@encrypt _a"),
    (f"seal_true{TWO}", BOTH, "HTTP\nencrypt = true"),
    (f"seal_false{TWO}", BOTH, "HTTP\nencrypt = false"),
    (f"seal_off_again{TWO}", BOTH, "HTTP\nencrypt\nencrypt = false"),
    (f"seal_one{TWO}", BOTH, "HTTP\nencrypt _b"),
    (f"seal_upper{TWO}", BOTH, "HTTP\nencrypt _B"),
    (f"seal_commas{TWO}", BOTH, "HTTP\nencrypt _a, _b"),
    (f"seal_unknown{TWO}", BOTH, "HTTP\nencrypt _a _nothing"),
    (f"seal_none{TWO}", BOTH, "HTTP\nencrypt _nothing"),
    (f"seal_and{TWO}", BOTH, "HTTP\nencrypt _a and _b"),
    (f"seal_prose{TWO}", BOTH, "HTTP\nEncrypt the values at rest\nProtected by row level security."),
    (f"open_prose(_id int) {TABLE} stable", READ, "HTTP\nDecrypt the values before they are shown."),
    ('seal_quoted("_The Name" text) returns text stable', "select seen($1)", "HTTP\nencrypt"),
    (
        "seal_numbers(_i int, _n numeric, _b boolean, _d date, _t text[], _u uuid) returns text stable",
        "select concat_ws('|', _i, _n, _b, _d, _t::text, _u, 'ok')",
        "HTTP\nencrypt",
    ),
    (
        "seal_named(_i int, _n numeric, _b boolean, _d date, _u uuid, _l int[], _a text) returns text stable",
        "select concat_ws('|', _i, _n, _b, _d, _u, _l::text, seen(_a))",
        "HTTP\nencrypt _i, _n, _b, _d, _u, _l, _a",
    ),
    (
        "seal_composite(_card card) returns text stable",
        "select seen((_card).number) || '|' || (_card).year",
        "HTTP\nencrypt _card",
    ),
    (
        "seal_varchar(_a varchar, _c char(200), _d varchar(300)) returns text stable",
        "select concat_ws('|', seen(_a), seen(rtrim(_c)), seen(_d))",
        "HTTP\nencrypt",
    ),
    (f"seal_path{ONE}", SEES, "HTTP GET /seal-path/{_a}\nencrypt"),
    (f"seal_query{ONE}", SEES, "HTTP GET\nencrypt"),
    (f"seal_body{ONE}", SEES, "HTTP POST\nencrypt"),
    ("seal_form(_a text) returns text", SEES, "HTTP POST\nencrypt"),
    ("seal_default(_a text default 'fallback') returns text stable", SEES, "HTTP\nencrypt"),
    (
        "seal_variadic(_id int, variadic _a text[] default '{}') returns text stable",
        "select string_agg(seen(x), ',') from unnest(_a) x",
        "HTTP\nencrypt _a",
    ),
    # combined with other annotations
    (f"seal_valid{ONE}", SEES, "HTTP GET\nencrypt\nvalidate _a using email"),
    (
        "seal_hashed(_p text, _h text default null) returns text",
        "select seen(_p) || '|' || (length(_h) > 100)::text",
        "HTTP POST\nparam _h is hash of _p\nencrypt _h",
    ),
    (f"seal_header{ONE}", SEES, "HTTP GET\nencrypt\nX-Sealed: {{_a}}".replace("{{", "{").replace("}}", "}")),
    (
        "seal_resolved(_a text, _r text default null) returns text stable",
        "select seen(_r)",
        "HTTP GET\nencrypt _a\n_r = select {_a}",
    ),
    (
        "seal_cached(_a text) returns text volatile",
        "update counter set calls = calls + 1; select calls || ' ' || seen(_a) from counter",
        "HTTP GET\nencrypt\ncached _a\ncache_expires 1h",
    ),
    ("seal_cached_header(_a text) returns text stable", SEES, "HTTP GET\nencrypt\ncached\nX-Sealed: {_a}"),
    (
        "seal_cached_resolved(_a text, _r text default null) returns text stable",
        "select seen(_a) || '|' || seen(_r)",
        "HTTP GET\nencrypt _a\ncached _a\n_r = select {_a}",
    ),
    (
        "seal_cached_page(_a text, _format text default null) returns table (seen text) stable",
        SEES,
        "HTTP GET\nencrypt _a\ncached\ntable_format = {_format}",
    ),
    ("seal_strict(_a text) returns text stable strict", SEES, "HTTP\nencrypt"),
    ("seal_closed(_a text) returns text stable", SEES, "HTTP\nencrypt\nauthorize"),
    # storing and reading
    (
        "keep(_id int, _secret text, _note text default null) returns void",
        "insert into vault (id, secret, note) values (_id, _secret, _note)",
        "HTTP POST\nencrypt _secret",
    ),
    (f"read_all(_id int) {TABLE} stable", READ, "HTTP\ndecrypt"),
    (f"read_decrypted(_id int) {TABLE} stable", READ, "HTTP\ndecrypted"),
    (f"read_unprotect(_id int) {TABLE} stable", READ, "HTTP\nunprotect"),
    (f"read_unprotected(_id int) {TABLE} stable", READ, "HTTP\nunprotected"),
    (f"read_true(_id int) {TABLE} stable", READ, "HTTP\ndecrypt = true"),
    (f"read_sql_name(_id int) {TABLE} stable", READ, "HTTP\ndecrypt card_no"),
    (f"read_api_name(_id int) {TABLE} stable", READ, "HTTP\ndecrypt cardNo"),
    (f"read_other_case(_id int) {TABLE} stable", READ, "HTTP\ndecrypt CARD_NO"),
    (
        f"read_false(_id int) {TABLE} stable",
        "select id, seen(secret), note from vault where id = _id",
        "HTTP\ndecrypt = false",
    ),
    (
        f"read_other(_id int) {TABLE} stable",
        "select id, seen(secret), note from vault where id = _id",
        "HTTP\ndecrypt plain",
    ),
    ("read_scalar(_id int) returns text stable", "select secret from vault where id = _id", "HTTP\ndecrypt nothing"),
    ("read_scalars() returns setof text stable", "select secret from vault order by id", "HTTP\ndecrypt"),
    ("read_out(_id int, out secret text) stable", "select secret from vault where id = _id", "HTTP\ndecrypt"),
    ("read_single(_id int) returns vault stable", "select * from vault where id = _id", "HTTP\ndecrypt\nsingle"),
    (f"read_raw(_id int) {TABLE} stable", READ, "HTTP\ndecrypt\nraw"),
    (
        "read_cached(_id int) returns text volatile",
        "update counter set calls = calls + 1; select secret from vault where id = _id",
        "HTTP GET\ndecrypt\ncached _id\ncache_expires 1h",
    ),
    (
        "read_cached_rows(_id int) returns table (n int, secret text) volatile",
        "update counter set calls = calls + 1; select calls, secret from vault, counter where id = _id",
        "HTTP GET\ndecrypt\ncached _id\ncache_expires 1h",
    ),
    ("wrong_word(_a text) returns text stable", SEES, "HTTP\nencrypt = maybe\ndecrypt = maybe"),
    (f"wrong_column(_id int) {TABLE} stable", READ, "HTTP\ndecrypt card_number"),
    ("looked_into() returns setof text stable", "select seen(secret) || ', ' || seen(note) from chest", "HTTP"),
    ("sign_in() returns table (user_id int, user_name text)", "select 41, 'kiri'", "HTTP POST\nlogin"),
    (
        "seal_claims(_user_id text default null, _user_name text default null) returns text stable",
        "select seen(_user_id) || '|' || seen(_user_name)",
        "HTTP GET\nauthorize\nuser_parameters\nencrypt _user_id",
    ),
    (
        "seal_every_claim(_user_id text default null, _user_name text default null) returns text stable",
        "select seen(_user_id) || '|' || seen(_user_name)",
        "HTTP GET\nauthorize\nuser_parameters\nencrypt",
    ),
    ("both_ways(_a text) returns text stable", "select _a", "HTTP\nencrypt\ndecrypt"),
]

FILES = {
    "two.sql": "-- HTTP GET\n-- decrypt\n-- @param $1 id integer\n"
    "select secret from vault where id = $1; select note, secret from vault where id = $1;",
    "keep_by_file.sql": "-- HTTP POST\n-- encrypt secret\ninsert into vault (id, secret) values (:id::int, :secret)",
    "seen_by_file.sql": "-- HTTP GET\n-- encrypt\n-- param n type is int\nselect seen(:a::text) as a, :n::int as n",
}

CASES: list[RequestContext] = [
    *(
        (f"GET /api/seal-{name}?a=x&b=y", "200T sealed|sealed")
        for name in ("encrypt", "encrypted", "protect", "protected", "true", "commas")
    ),
    ("GET /api/seal-at?a=x&b=y", "200T sealed|plain y"),
    ("GET /api/seal-false?a=x&b=y", "200T plain x|plain y"),
    ("GET /api/seal-off-again?a=x&b=y", "200T plain x|plain y"),
    ("GET /api/seal-one?a=x&b=y", "200T plain x|sealed"),
    ("GET /api/seal-upper?a=x&b=y", "200T plain x|sealed"),
    ("GET /api/seal-unknown?a=x&b=y", "404 "),
    ("GET /api/seal-none?a=x&b=y", "404 "),
    ("GET /api/seal-and?a=x&b=y", "200T sealed|sealed"),
    ("GET /api/seal-prose?a=x&b=y", "200T plain x|plain y"),
    ("GET /api/wrong-column?id=1", "404 "),
    ("GET /api/wrong-word?a=x", "404 "),
    ("GET /api/seal-encrypt?a=x", "200T sealed|null"),
    ("GET /api/seal-encrypt?a=&b=", "200T sealed|sealed"),
    ("GET /api/seal-encrypt?a=%D0%B6%00", "400"),
    ("GET /api/seal-quoted?theName=x", "404"),
    (
        "GET /api/seal-numbers?i=1&n=1.5&b=true&d=2024-01-02&t=a&t=b&u=00000000-0000-0000-0000-000000000001",
        "200T 1|1.5|t|2024-01-02|{a,b}|00000000-0000-0000-0000-000000000001|ok",
    ),
    (
        "GET /api/seal-named?i=1&n=1.5&b=true&d=2024-01-02&u=00000000-0000-0000-0000-000000000001&l=3&l=4&a=x",
        "200T 1|1.5|t|2024-01-02|00000000-0000-0000-0000-000000000001|{3,4}|sealed",
    ),
    ("GET /api/seal-composite?cardNumber=x&cardYear=2030", "200T sealed|2030"),
    ("GET /api/seal-varchar?a=x&c=y&d=z", "200T sealed|sealed|sealed"),
    ("GET /seal-path/value", "200T sealed"),
    ("GET /api/seal-query?a=value", "200T sealed"),
    ('POST /api/seal-body {"a":"value"}', "200T sealed"),
    ('POST /api/seal-body {"a":null}', "200T null"),
    ('POST /api/seal-body {"a":7}', "200T sealed"),
    ("GET /api/seal-default", "200T plain fallback"),
    ("GET /api/seal-default?a=mine", "200T sealed"),
    ("GET /api/seal-variadic?id=1&a=x&a=y", "200T sealed,sealed"),
    ("GET /api/seal-valid?a=unknown", "400"),
    ("GET /api/seal-valid?a=a@b.example", "200T sealed"),
    ('POST /api/seal-hashed {"p":"x","h":"theirs"}', "200T plain x|true"),
    ("GET /api/seal-resolved?a=x", "200T sealed"),
    ("GET /api/seal-cached-resolved?a=x", "200T sealed|sealed"),
    ("GET /api/seal-cached-page?a=x", '200 [{"seen":"sealed"}]'),
    ("GET /api/seal-strict?a=x", "200T sealed"),
    ("GET /api/seal-closed?a=x", "401"),
    ("GET /api/both-ways?a=x", "200T x"),
    ("GET /api/seen-by-file?a=x&n=1", '200 [{"a":"sealed","n":1}]'),
]

IN_ORDER: list[RequestContext] = [
    ('POST /api/keep {"id":1,"secret":"XX12 \\"ж\\"","note":"open"}', "204"),
    ('POST /api/keep {"id":2,"secret":null}', "204"),
    ('POST /api/keep {"id":3,"secret":""}', "204"),
    *(
        (f"GET /api/read-{name}?id=1", '200 [{"id":1,"cardNo":"XX12 \\"ж\\"","plain":"open"}]')
        for name in ("all", "decrypted", "unprotect", "unprotected", "true", "sql-name", "api-name", "other-case")
    ),
    ("GET /api/read-false?id=1", '200 [{"id":1,"cardNo":"sealed","plain":"open"}]'),
    ("GET /api/read-other?id=1", '200 [{"id":1,"cardNo":"sealed","plain":"open"}]'),
    ("GET /api/read-all?id=2", '200 [{"id":2,"cardNo":null,"plain":null}]'),
    ("GET /api/read-all?id=3", '200 [{"id":3,"cardNo":"","plain":null}]'),
    ("GET /api/read-scalar?id=1", '200T XX12 "ж"'),
    ("GET /api/read-scalars", '200 ["XX12 \\"ж\\"",null,""]'),
    ("GET /api/read-out?id=1", '200T XX12 "ж"'),
    ("GET /api/read-single?id=1", '200 {"id":1,"secret":"XX12 \\"ж\\"","note":"open","extra":null}'),
    ("GET /api/read-raw?id=1", '200J 1XX12 "ж"open'),
    ("GET /api/two?id=1", '200 {"result1":["XX12 \\"ж\\""],"result2":[{"note":"open","secret":"XX12 \\"ж\\""}]}'),
    ('POST /api/keep-by-file {"id":4,"secret":"filed"}', "204"),
    ("GET /api/read-scalar?id=4", "200T filed"),
    # tables
    ('PUT /api/chest {"id":1,"secret":"XX12","note":"open"}', "204"),
    ("GET /api/looked-into", '200 ["sealed, plain open"]'),
    ("GET /api/chest?id=1", '200 [{"id":1,"secret":"XX12","note":"open"}]'),
    ("GET /api/chest?secret=XX12", "400 secret is stored encrypted"),
    ("DELETE /api/chest?secret=XX12", "400 secret is stored encrypted"),
    ("GET /api/chest?note=open", '200 [{"id":1,"secret":"XX12","note":"open"}]'),
    ('POST /api/chest/returning {"id":1,"secret":"YY"}', '200 [{"id":1,"secret":"YY","note":"open"}]'),
    ("GET /api/looked-into", '200 ["sealed, plain open"]'),
    ("DELETE /api/chest/returning?id=1", '200 [{"id":1,"secret":"YY","note":"open"}]'),
    ("GET /api/seal-cached?a=x", "200T 1 sealed"),
    ("GET /api/seal-cached?a=x", "200T 1 sealed"),
    ("GET /api/seal-cached?a=y", "200T 2 sealed"),
    ("GET /api/read-cached?id=1", '200T XX12 "ж"'),
    ("GET /api/read-cached?id=1", '200T XX12 "ж"'),
    ("GET /api/read-cached-rows?id=1", '200 [{"n":4,"secret":"XX12 \\"ж\\""}]'),
    ("GET /api/read-cached-rows?id=1", '200 [{"n":4,"secret":"XX12 \\"ж\\""}]'),
]


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    settings = {
        **file_settings(folder),
        "Auth:CookieAuth": "true",
        "CacheOptions:Enabled": "true",
        "Service:CrudSource:Enabled": "true",
        "Service:TableFormatOptions:Enabled": "true",
        "ValidationOptions:Enabled": "true",
    }
    return serve(database, SEEN + routines(ROUTINES), settings)


@pytest.mark.parametrize("context", cases(CASES))
def test_encrypt_rules_select_the_encrypted_values(service: Service, context: RequestContext) -> None:
    check(service, context)


def test_cached_endpoints_encrypt_for_table_formats_and_headers_too(service: Service) -> None:
    """Also on a cache hit (protection-9)."""
    for _ in range(2):
        page = service.get("/api/seal-cached-page?a=x&format=html")
        assert (page.status_code, "<td>sealed</td>" in page.text) == (200, True), page.text
        response = service.get("/api/seal-cached-header?a=secret")
        assert response.text == "sealed"
        assert len(response.headers["x-sealed"]) >= 60


MESSAGES = [
    ("seal_unknown", "no parameter _nothing"),
    ("seal_none", "no parameter _nothing"),
    ("wrong_word", "'maybe' is neither true nor false (comment line: encrypt = maybe)"),
    ("wrong_word", "'maybe' is neither true nor false (comment line: decrypt = maybe)"),
    ("wrong_column", "no column card_number to decrypt; its columns are id, card_no, plain; the endpoint is left out"),
    ("seal_named", "_i is integer, of which no value is encrypted (comment line: encrypt _i"),
    ("seal_prose", "no parameter the, values, at, rest to encrypt; its parameters are _a, _b; the line is prose"),
    ("open_prose", "to decrypt; its columns are id, card_no, plain; the line is prose"),
]


@pytest.mark.parametrize(("name", "words"), MESSAGES)
def test_encryption_warnings_are_logged_at_the_start(service: Service, name: str, words: str) -> None:
    assert any(name in line and words in line and "WRN" in line for line in service.log.splitlines())


def test_decrypt_rules_select_the_decrypted_columns(service: Service) -> None:
    check_in_order(service, IN_ORDER)


def test_claim_parameters_are_encrypted(service: Service) -> None:
    with service.new_client() as client:
        client.post("/api/sign-in")
        assert client.get("/api/seal-claims").text == "sealed|plain kiri"
        assert client.get("/api/seal-every-claim").text == "sealed|sealed"


def encrypted(folder: Path, database: Database, settings: Mapping[str, str]) -> tuple[str, str]:
    """Return the last line of the output, and the error output."""
    values = {"ConnectionStrings:Default": database.conninfo, **settings}
    done = rowcall(folder, "--encrypt", "XX12 ж", *(f"--{key}={value}" for key, value in values.items()))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1], done.stderr


@pytest.mark.slow
def test_encrypt_command_uses_the_keys_of_the_service(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    """With the keys that the service then finds in their folder."""
    protected = "DataProtection:"
    settings = {
        protected + "Storage": "FileSystem",
        protected + "FileSystemPath": str(tmp_path / "keys"),
        protected + "CustomApplicationName": "vault",
    }
    (first, result), (second, _) = (encrypted(tmp_path, own_database, settings) for _ in range(2))
    assert (len(first), first != second, result) == (len(second), True, "")
    service = serve_once(
        own_database, SEEN + routines([("open_it(_a text) returns text", "select _a", OPENS)]), settings
    )
    for sealed in (first, second):
        assert service.get("/api/open-it", params={"a": sealed}).text == "XX12 ж"
    sealed, result = encrypted(tmp_path, own_database, {})
    assert len(sealed) > 60
    assert "ends with this command" in result
    off, _ = encrypted(tmp_path, own_database, {protected + "Enabled": "false"})
    assert off.startswith("Data protection is not configured")


def test_decrypt_of_a_single_column_logs_no_warning(service: Service) -> None:
    """For a single value, names do not matter (protection-8 to protection-13)."""
    log = [line for line in service.log.splitlines() if "to decrypt; its columns" in line]
    assert len(log) == 2, log
