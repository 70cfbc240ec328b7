"""Access rules, and what routines and files receive about the caller (access-1 to access-20)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import check
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

SQL = """
create function sign_in(_who text) returns table (
    scheme text, user_id int, user_name text, user_roles text[], depot text, tags text[]
) language sql as $$
  select 'BearerToken', id, name, roles, depot, tags from (values
    ('kiri', 41, 'kiri', array['boss','gate'], 'north', array['x','y']),
    ('mo', 42, 'mo', array['gate'], null, array['x']),
    ('plain', 43, 'plain', '{}', '', '{}')) as p (who, id, name, roles, depot, tags) where who = _who $$;
comment on function sign_in is 'HTTP POST
login';
create table stock (id int primary key, n int);
comment on table stock is 'HTTP
authorize boss
for select
authorize
for delete
allow_anonymous
authorize boss';
"""

ACCESS: dict[str, tuple[str, str]] = {
    # Name: lines of the comment, and the statuses for an anonymous caller, kiri (boss, gate), mo (gate) and a user
    # without roles.
    "plain": ("", "401 200 200 200"),
    "open": ("allow_anonymous", "200 200 200 200"),
    "open_2": ("anonymous", "200 200 200 200"),
    "open_3": ("@allow_anon", "200 200 200 200"),
    "open_4": ("ANON", "200 200 200 200"),
    "closed": ("authorize", "401 200 200 200"),
    "closed_2": ("authorized", "401 200 200 200"),
    "closed_3": ("@requires_authorization", "401 200 200 200"),
    "bosses": ("authorize boss", "401 200 403 403"),
    "bosses_at": ("@authorize boss", "401 200 403 403"),
    "either": ("authorize boss, clerk", "401 200 403 403"),
    "either_blank": ("authorize clerk gate", "401 200 200 403"),
    "clerks": ("requires_authorization clerk", "401 403 403 403"),
    # Roles only: NpgsqlRest compares ids and names with the same words.
    "by_id": ("authorize 42", "401 403 403 403"),
    "by_name": ("authorize kiri, 43", "401 403 403 403"),
    "by_said_id": ("authorize user:42", "401 403 200 403"),
    "by_said_name": ("authorize name:kiri, user:43", "401 200 403 200"),
    "part_of_role": ("authorize bos", "401 403 403 403"),
    "closed_then_open": ("authorize\nallow_anonymous", "200 200 200 200"),
    "open_then_closed": ("allow_anonymous\nauthorize", "401 200 200 200"),
    "roles_then_open": ("authorize boss\nallow_anonymous", "200 200 200 200"),
    "open_then_roles": ("allow_anonymous\nauthorize boss", "401 200 403 403"),
    "replaced": ("authorize boss\nauthorize gate", "401 200 200 403"),
    "kept": ("authorize boss\nauthorize", "401 200 403 403"),
    "odd_commas": ("authorize boss , ,", "401 200 403 403"),
    "header_first": ("X-A: b\nauthorize boss", "401 200 403 403"),
    "with_table": ("allow_anonymous\ntable_format = html", "200 200 200 200"),
    "logout": ("logout", "401 200 200 200"),
    "logout_open": ("logout\nallow_anonymous", "200 200 200 200"),
    "login_closed": ("login\nauthorize boss", "200 200 200 200"),
}

ROUTINES = """
create function p_text(_user_id text, _user_name text default 'none') returns text language sql stable
return _user_id || '|' || coalesce(_user_name, '?');
comment on function p_text is 'HTTP GET
authorize
user_parameters';
create function p_roles(_user_roles text[] default null, _n int default 0) returns text language sql stable
return coalesce(array_to_string(_user_roles, '+'), 'none') || _n;
comment on function p_roles is 'HTTP GET
allow_anonymous
user_params';
create function p_off(_user_id text default 'own') returns text language sql stable return _user_id;
comment on function p_off is 'HTTP GET
authorize';
create function p_false(_user_id text default 'own') returns text language sql stable return _user_id;
comment on function p_false is 'HTTP GET
authorize
user_parameters = false';
create function p_true(_user_id text default 'own') returns text language sql stable return _user_id;
comment on function p_true is 'HTTP GET
authorize
@user_parameters = true';
create function p_claims(_user_claims json default null, _ip_address text default null) returns text language sql stable
return coalesce(_user_claims ->> 'user_name', 'none') || '|' || coalesce(_ip_address, 'none');
comment on function p_claims is 'HTTP GET
allow_anonymous
user_parameters';
create function p_depot(_depot text default 'default', _tags text[] default '{none}') returns text language sql stable
return coalesce(_depot, 'null') || '|' || coalesce(array_to_string(_tags, '+'), 'null');
comment on function p_depot is 'HTTP GET
allow_anonymous
user_parameters';
create function p_missing(_missing text default 'default', _other text default null) returns text language sql stable
return coalesce(_missing, 'null') || coalesce(_other, '');
comment on function p_missing is 'HTTP GET
authorize
user_parameters';
create function p_required(_missing text) returns text language sql stable return coalesce(_missing, 'null');
comment on function p_required is 'HTTP GET
authorize
user_parameters';
create function p_open(_user_id text) returns text language sql stable return _user_id;
comment on function p_open is 'HTTP GET
allow_anonymous
user_parameters';
create function p_body(_user_id text, _note text) returns text language sql as $$select _user_id || _note$$;
comment on function p_body is 'HTTP POST
authorize
user_parameters
X-User: {_user_id}/{userId}';
create function p_strict(_depot text) returns text language sql stable strict return _depot;
comment on function p_strict is 'HTTP GET
authorize
user_parameters';
create function p_resolved(_user_id text, _twice text default null) returns text language sql stable return _twice;
comment on function p_resolved is 'HTTP GET
authorize
user_parameters
_twice = select {_user_id} || {_user_id}';
create function c_all() returns text language sql stable return concat_ws('|', current_setting('request.user_id', true),
  current_setting('request.user_name', true), current_setting('request.user_roles', true));
comment on function c_all is 'HTTP GET
allow_anonymous
user_context';
create function c_false() returns text language sql stable
return coalesce(nullif(current_setting('request.user_id', true), ''), 'none');
comment on function c_false is 'HTTP GET
authorize
user_context = false';
create function c_roles() returns text[] language sql stable
return current_setting('request.user_roles', true)::text[];
comment on function c_roles is 'HTTP GET
authorize
user_context = true';
create function c_ip() returns text language sql stable return current_setting('request.ip_address', true);
comment on function c_ip is 'HTTP GET
allow_anonymous
user_context';
create function c_both(_user_id text) returns text language sql stable
return _user_id || current_setting('request.user_id', true);
comment on function c_both is 'HTTP GET
authorize
user_context
user_params';
create function c_claims() returns json language sql stable return current_setting('request.jwt', true)::json;
comment on function c_claims is 'HTTP GET
authorize
user_context';
"""

FILES = {
    "f_me.sql": "-- HTTP GET\n-- authorize\n-- user_parameters\nselect :_user_id as id, :_user_roles::text[] as roles",
    "f_renamed.sql": "-- HTTP GET\n-- authorize\n-- user_parameters\n-- param $1 _user_name\nselect $1 as name, 1 as n",
    "f_int.sql": "-- HTTP GET\n-- authorize\n-- user_parameters\nselect :_user_id::int + 1 as next, 1 as n",
    "f_context.sql": "-- HTTP GET\n-- authorize\n-- user_context\n"
    "select current_setting('request.user_name', true) as name, 1 as n",
    "f_boss.sql": "-- HTTP GET\n-- @authorize boss\nselect 1 as n",
    "f_plain.sql": "-- HTTP GET\nselect 1 as n",
    "f_open.sql": "-- HTTP GET\n-- @anonymous\nselect 1 as n",
}

Caller = tuple[str | None, str, str]
"""Caller, request, and response."""

ASKED: list[Caller] = [
    ("kiri", "GET /api/p-text", "200T 41|kiri"),
    ("kiri", "GET /api/p-text?userId=99&userName=x", "200T 41|kiri"),
    (None, "GET /api/p-text", "401"),
    (None, "GET /api/p-text?userId=9", "401"),
    ("kiri", "GET /api/p-text?other=1", "404 'other'"),
    ("kiri", "GET /api/p-roles?n=1", "200T boss+gate1"),
    ("mo", "GET /api/p-roles", "200T gate0"),
    ("plain", "GET /api/p-roles", "200T none0"),
    (None, "GET /api/p-roles", "200T none0"),
    (None, "GET /api/p-roles?userRoles=a&userRoles=b", "200T none0"),
    ("kiri", "GET /api/p-off", "200T own"),
    ("kiri", "GET /api/p-off?userId=x", "200T x"),
    ("kiri", "GET /api/p-false", "200T own"),
    ("kiri", "GET /api/p-true", "200T 41"),
    ("kiri", "GET /api/p-claims", "200T kiri|127.0.0.1"),
    (None, "GET /api/p-claims", "200T none|127.0.0.1"),
    (None, "GET /api/p-claims?ipAddress=6.6.6.6", "200T none|127.0.0.1"),
    (None, 'GET /api/p-claims?userClaims={"user_name":"me"}', "200T none|127.0.0.1"),
    ("kiri", 'GET /api/p-claims?userClaims={"user_name":"me"}', "200T kiri|127.0.0.1"),
    ("kiri", "GET /api/p-depot", "200T north|x+y"),
    ("mo", "GET /api/p-depot", "200T null|x"),
    ("plain", "GET /api/p-depot", "200T null|none"),
    (None, "GET /api/p-depot", "200T default|none"),
    (None, "GET /api/p-depot?depot=own", "200T default|none"),
    ("kiri", "GET /api/p-missing", "200T default"),
    ("kiri", "GET /api/p-missing?missing=mine", "200T default"),
    ("kiri", "GET /api/p-required", "200T null"),
    (None, "GET /api/p-open", "200E"),
    (None, "GET /api/p-open?userId=own", "200E"),
    ("mo", "GET /api/p-open?userId=own", "200T 42"),
    ("mo", 'POST /api/p-body {"note":"!"}', "200T 42!"),
    ("mo", 'POST /api/p-body {"note":"!","userId":"1"}', "200T 42!"),
    ("mo", "POST /api/p-body {}", "404 'note'"),
    (None, "POST /api/p-body {}", "401"),
    (None, "POST /api/p-body {", "401"),
    ("kiri", "GET /api/p-strict", "200T north"),
    ("mo", "GET /api/p-strict", "204"),
    (None, "GET /api/p-strict?depot=", "401"),
    ("mo", "GET /api/p-resolved", "200T 4242"),
    ("kiri", "GET /api/c-all", '200T 41|kiri|{"boss","gate"}'),
    ("plain", "GET /api/c-all", "200T 43|plain|"),
    ("kiri", "GET /api/c-false", "200T none"),
    ("kiri", "GET /api/c-roles", '200J ["boss","gate"]'),
    (None, "GET /api/c-ip", "200T 127.0.0.1"),
    ("kiri", "GET /api/c-ip", "200T 127.0.0.1"),
    ("kiri", "GET /api/c-both", "200T 4141"),
    ("mo", "GET /api/c-claims", '200J {"user_id":"42","user_name":"mo","user_roles":["gate"],"depot":null,"tags":"x"}'),
    ("kiri", "GET /api/f-me", '200 [{"id":"41","roles":["boss","gate"]}]'),
    ("kiri", "GET /api/f-renamed", '200 [{"name":"kiri","n":1}]'),
    ("kiri", "GET /api/f-int", '200 [{"next":42,"n":1}]'),
    ("kiri", "GET /api/f-context", '200 [{"name":"kiri","n":1}]'),
    ("kiri", "GET /api/f-boss", "200 [1]"),
    ("mo", "GET /api/f-boss", "403 Forbidden"),
    (None, "GET /api/f-boss", "401 Unauthorized"),
    (None, "GET /api/f-plain", "401"),
    ("mo", "GET /api/f-plain", "200 [1]"),
    (None, "GET /api/f-open", "200 [1]"),
    (None, "GET /api/stock", "401"),
    ("plain", "GET /api/stock", "403"),
    ("kiri", "GET /api/stock", "200 []"),
    ("mo", 'PUT /api/stock {"id":1}', "403"),
    ("kiri", 'PUT /api/stock {"id":1}', "204"),
    (None, "DELETE /api/stock?id=1", "401"),
    (None, "GET /api/unknown", "404"),
    (None, "POST /api/p-text", "405"),
]

SETTINGS = {
    "Auth:BearerTokenAuth": "true",
    "Service:RequiresAuthorization": None,
    "Service:CrudSource:Enabled": "true",
    "Service:TableFormatOptions:Enabled": "true",
    "Service:AuthenticationOptions:ClaimsJsonContextKey": "request.jwt",
    "Service:AuthenticationOptions:ParameterNameClaimsMapping:_user_id": "user_id",
    "Service:AuthenticationOptions:ParameterNameClaimsMapping:_user_name": "user_name",
    "Service:AuthenticationOptions:ParameterNameClaimsMapping:_user_roles": "user_roles",
    "Service:AuthenticationOptions:ParameterNameClaimsMapping:_depot": "depot",
    "Service:AuthenticationOptions:ParameterNameClaimsMapping:_tags": "tags",
    "Service:AuthenticationOptions:ParameterNameClaimsMapping:_missing": "missing",
}

WHO: tuple[str | None, ...] = (None, "kiri", "mo", "plain")


def _access_sql() -> str:
    parts = []
    for name, (lines, _) in ACCESS.items():
        returns = "table (user_id int)" if "login" in lines else "setof text"
        select = "select 9" if "login" in lines else "select null::text"
        parts.append(
            f"create function a_{name}() returns {returns} language sql as $${select}$$;\n"
            f"comment on function a_{name} is 'HTTP GET\n{lines}';\n"
        )
    return "".join(parts)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    return serve(database, SQL + _access_sql() + ROUTINES, SETTINGS | file_settings(folder))


@pytest.fixture(scope="module")
def headers(service: Service) -> Mapping[str | None, dict[str, str]]:
    """Return the headers of each user by name."""
    result: dict[str | None, dict[str, str]] = {None: {}}
    for who in ("kiri", "mo", "plain"):
        token = service.post("/api/sign-in", json={"who": who}).json()["accessToken"]
        result[who] = {"Authorization": f"Bearer {token}"}
    return result


@pytest.mark.parametrize("name", ACCESS)
def test_access_annotations_determine_the_status_per_caller(
    service: Service, headers: Mapping[str | None, dict[str, str]], name: str
) -> None:
    path = f"/api/a-{name.replace('_', '-')}"
    statuses = [service.get(path, headers=headers[who]).status_code for who in WHO]
    assert " ".join(map(str, statuses)) == ACCESS[name][1]


@pytest.mark.parametrize(
    "access_case", ASKED, ids=[f"{number}-{who}-{line}" for number, (who, line, _) in enumerate(ASKED)]
)
def test_response_depends_on_the_identity_of_the_caller(
    service: Service, headers: Mapping[str | None, dict[str, str]], access_case: Caller
) -> None:
    who, request, expected = access_case
    check(service, (request, expected), headers[who])
