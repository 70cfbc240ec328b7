"""Login rows in the forms that users of NpgsqlRest write: status, scheme, body, hash, claims (sign-in-14 to sign-in-23,
access-12 to access-20)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import KIRI_STORED

LOGINS: dict[str, tuple[str, str]] = {
    "bare": ("user_id int", "7"),
    "no_row": ("user_id int", "7 where false"),
    "of_nulls": ("user_id int, user_name text", "null::int, null::text"),
    "status_true": ("status bool, user_id int", "true, 7"),
    "status_false": ("status bool, user_id int", "false, 7"),
    "status_false_last": ("user_id int, body text, status bool", "7, 'a text', false"),
    "status_200": ("status int, user_id int", "200, 7"),
    "status_small": ("status smallint, user_id int", "200::smallint, 7"),
    "status_big": ("status bigint, user_id int", "200, 7"),
    "status_201": ("status int, user_id int", "201, 7"),
    "status_403": ("status int, user_id int", "403, 7"),
    "status_418_body": ("status int, body text, user_id int", "418, 'short and stout', 7"),
    "status_202_body": ("status int, body text, user_id int", "202, 'later', 7"),
    "status_text": ("status text, user_id int", "'ok', 7"),
    "status_numeric": ("status numeric, user_id int", "200, 7"),
    "status_null": ("status int, user_id int", "null::int, 7"),
    "status_null_bool": ("status bool, user_id int", "null::bool, 7"),
    "status_1000": ("status int, user_id int", "1000, 7"),
    "upper_status": ('"STATUS" bool, user_id int', "false, 7"),
    "scheme_cookie": ("scheme text, user_id int", "'Cookies', 7"),
    "scheme_null": ("scheme text, user_id int", "null::text, 7"),
    "scheme_unknown": ("scheme text, user_id int", "'Nowhere', 7"),
    "scheme_case": ("scheme text, user_id int", "'cookies', 7"),
    "body_only": ("user_id int, body text", "7, 'hi {kiri}'"),
    "body_json": ("user_id int, body json", """7, '{"a": 1}'::json"""),
    "body_null": ("user_id int, body text", "7, null::text"),
    "body_empty": ("user_id int, body text", "7, ''"),
    "hash_null": ("hash text, user_id int", "null::text, 7"),
    "raises": ("user_id int", "shout('P0001')"),
    "denies": ("user_id int", "shout('42501')"),
    "breaks": ("user_id int", "1 / (random() * 0)::int"),
    "two_rows": ("user_id int, body text", "n, 'row ' || n from generate_series(1, 2) n"),
}

ANSWERS: list[RequestContext] = [
    ("POST /api/bare", "200E"),
    ("POST /api/no-row", "401 Unauthorized"),
    ("POST /api/of-nulls", "401 Unauthorized"),
    ("POST /api/status-true", "200E"),
    ("POST /api/status-false", "401"),
    ("POST /api/status-false-last", "401"),
    ("POST /api/status-200", "200E"),
    ("POST /api/status-small", "200E"),
    ("POST /api/status-big", "200E"),
    ("POST /api/status-201", "201E", {"set-cookie": None}),
    ("POST /api/status-403", "403", {"set-cookie": None}),
    ("POST /api/status-418-body", "418J short and stout", {"set-cookie": None}),
    ("POST /api/status-202-body", "202 later", {"set-cookie": None}),
    ("POST /api/status-text", "500"),
    ("POST /api/status-numeric", "500"),
    ("POST /api/status-null", "500"),
    ("POST /api/status-null-bool", "500"),
    ("POST /api/status-1000", "500"),
    ("POST /api/upper-status", "401"),
    ("POST /api/scheme-cookie", "200E", {"cache-control": "no-cache,no-store", "pragma": "no-cache",
                                         "expires": "Thu, 01 Jan 1970 00:00:00 GMT"}),
    ("POST /api/scheme-null", "200E"),
    ("POST /api/scheme-unknown", "404", {"set-cookie": None}),
    ("POST /api/scheme-case", "404"),
    ("POST /api/body-only", "200 hi {kiri}"),
    ("POST /api/body-json", '200 {"a": 1}'),
    ("POST /api/body-null", "200E"),
    ("POST /api/body-empty", "200E"),
    ("POST /api/hash-null", "200E"),
    ("POST /api/raises", "400 shouted|P0001", {"set-cookie": None}),
    ("POST /api/denies", "403 Insufficient Privilege|42501"),
    ("POST /api/breaks", "500 22012"),
    ("POST /api/two-rows", "200 row 1"),
    ("GET /api/bare", "405"),
    ("POST /api/bare?x=1", "200E"),
    ('POST /api/bare {"x":1}', "404 'x'"),
    ("POST /api/bare {", "400"),
    ('POST /api/with-hash {"password":"open sesame"}', "200E"),
    ('POST /api/with-hash {"password":"guessed"}', "401", {"set-cookie": None}),
    ('POST /api/with-hash {"password":""}', "401", {"set-cookie": None}),
    ('POST /api/with-hash {"password":null}', "401", {"set-cookie": None}),
    ("POST /api/with-hash {}", "404 'password'"),
    ('POST /api/hash-and-status {"password":"open sesame","status":403}', "403"),
    ('POST /api/hash-and-status {"password":"guessed","status":403}', "401"),
    ('POST /api/hash-and-status {"password":"guessed","status":401}', "401"),
]  # fmt: skip

CLAIMS: dict[str, tuple[str, str, str]] = {
    "identity": (
        "user_id int, user_name text, user_roles text[]",
        "41, 'kiri', array['boss','gate']",
        '{"user_id":"41","user_name":"kiri","user_roles":["boss","gate"]}',
    ),
    "one_role": ("user_id int, user_roles text[]", "1, array['boss']", '{"user_id":"1","user_roles":["boss"]}'),
    "role_text": ("user_id int, user_roles text", "1, 'boss'", '{"user_id":"1","user_roles":["boss"]}'),
    "no_roles": ("user_id int, user_roles text[]", "1, '{}'::text[]", '{"user_id":"1"}'),
    "null_roles": ("user_id int, user_roles text[]", "1, null::text[]", '{"user_id":"1"}'),
    "null_in_roles": ("user_id int, user_roles text[]", "1, array['a',null]", '{"user_id":"1","user_roles":["a"]}'),
    "null_claim": ("user_id int, depot text", "1, null::text", '{"user_id":"1","depot":null}'),
    "empty_claim": ("user_id int, depot text", "1, ''", '{"user_id":"1","depot":null}'),
    "array_claim": ("user_id int, tags text[]", "1, array['a','b']", '{"user_id":"1","tags":["a","b"]}'),
    "array_of_one": ("user_id int, tags text[]", "1, array['a']", '{"user_id":"1","tags":"a"}'),
    "array_of_none": ("user_id int, tags text[]", "1, '{}'::text[]", '{"user_id":"1"}'),
    "int_array": ("user_id int, ports int[]", "1, array[80,443]", '{"user_id":"1","ports":["80","443"]}'),
    "bools": ("user_id int, active bool, gone bool", "1, true, false",
              '{"user_id":"1","active":"True","gone":"False"}'),
    "numbers": ("user_id bigint, n numeric, d float8", "9007199254740993, 1.50, 0.5",
                '{"user_id":"9007199254740993","n":"1.50","d":"0.5"}'),
    "others": ("user_id uuid, at date, ts timestamp", "'00000000-0000-0000-0000-00000000000a'::uuid, "
               "date '2026-01-02', timestamp '2026-01-02 03:04:05'",
               '{"user_id":"00000000-0000-0000-0000-00000000000a","at":"2026-01-02","ts":"2026-01-02 03:04:05"}'),
    "names": ('user_id int, some_claim text, "MixedCase" text, "with space" text', "1, 'a', 'b', 'c'",
              '{"user_id":"1","some_claim":"a","MixedCase":"b","with space":"c"}'),
    "escapes": ("user_id int, note text", """1, E'<"\\\\ж>&'""", '{"user_id":"1","note":"<\\"\\\\ж>&"}'),
    "json_claim": ("user_id int, doc json", """1, '{"a": [1]}'::json""", '{"user_id":"1","doc":"{\\"a\\": [1]}"}'),
    "without_special": ("status int, user_id int, body text", "200, 1, 'unused'", '{"user_id":"1"}'),
    "other_roles_case": ('user_id int, "User_Roles" text', "1, 'x'", '{"user_id":"1","User_Roles":["x"]}'),
}  # fmt: skip

FUNCTION = """
create function {name}({arguments}) returns table ({columns}) language sql as $body$select {select}$body$;
comment on function {name} is 'HTTP POST
login
{lines}';
"""

SQL = """
create function shout(_state text) returns int language plpgsql as
  $$ begin raise exception 'shouted' using errcode = _state; end $$;
create function claims(_user_claims json default null) returns json language sql stable return _user_claims;
comment on function claims is 'HTTP GET
authorize
user_parameters';
create function strict_login(_name text, _password text) returns table (user_id int, hash text) language sql strict as
  $$ select 7, _password $$;
comment on function strict_login is 'HTTP POST
login';
create function strict_logout(_reason text) returns void language sql strict as '';
comment on function strict_logout is 'HTTP POST
logout';
"""


def _sql(hashed: str) -> str:
    rows = [(name, "", *row, "") for name, row in LOGINS.items()]
    rows += [
        (f"c_{name}", "", f"scheme text, {row[0]}", f"'BearerToken', {row[1]}", "") for name, row in CLAIMS.items()
    ]
    rows.append(("with_hash", "_password text", "hash text, user_id int", f"'{hashed}', 7", "sensitive"))
    columns = "hash text, status int, user_id int"
    rows.append(("hash_and_status", "_password text, _status int", columns, f"'{hashed}', _status, 7", "sensitive"))
    return SQL + "".join(
        FUNCTION.format(name=name, arguments=arguments, columns=columns, select=select, lines=lines)
        for name, arguments, columns, select, lines in rows
    )


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {"Auth:CookieAuth": "true", "Auth:BearerTokenAuth": "true", "Service:RequiresAuthorization": None}
    return serve(database, _sql(KIRI_STORED), settings)


@pytest.mark.parametrize("context", cases(ANSWERS))
def test_login_row_determines_the_response(service: Service, context: RequestContext) -> None:
    service.client.cookies.clear()
    check(service, context)


@pytest.mark.parametrize("name", CLAIMS)
def test_other_login_columns_become_claims(service: Service, name: str) -> None:
    response = service.post(f"/api/c-{name.replace('_', '-')}")
    assert response.status_code == 200, response.text
    token = response.json()["accessToken"]
    service.client.cookies.clear()
    check(service, ("GET /api/claims", f"200 {CLAIMS[name][2]}"), {"Authorization": f"Bearer {token}"})


def test_strict_login_with_null_fails_as_without_a_row(service: Service) -> None:
    service.client.cookies.clear()
    check(service, ('POST /api/strict-login {"name":"kiri","password":null}', "401 Unauthorized", {"set-cookie": None}))


def test_strict_logout_with_null_ends_the_session(service: Service) -> None:
    with service.new_client() as client:
        assert client.post("/api/bare").status_code == 200
        assert client.get("/api/claims").status_code == 200
        cookies = dict(client.cookies)
        assert cookies
        assert client.post("/api/strict-logout", json={"reason": None}).is_success
        assert not client.cookies
        assert client.get("/api/claims").status_code == 401
