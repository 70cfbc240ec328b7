"""Which routines of a database are served (discovery-14 to discovery-18)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import answer
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create schema shop;
create schema back_office;
create function top_a() returns int language sql stable as 'select 1';
create function top_b() returns int language plpgsql stable as 'begin return 2; end';
create function shop.items() returns int language sql stable as 'select 3';
create function back_office.audit() returns int language sql stable as 'select 4';
create function only_modified() returns int language sql stable as 'select 5';
create function uncommented() returns int language sql stable as 'select 6';
comment on function top_a() is 'HTTP';
comment on function top_b() is 'HTTP';
comment on function shop.items() is 'HTTP';
comment on function back_office.audit() is 'HTTP';
comment on function only_modified() is 'PATH /moved';

create function in_c(cstring) returns text language internal strict immutable as 'textin';
comment on function in_c(cstring) is 'HTTP';
create function as_trigger() returns trigger language plpgsql as 'begin return new; end';
comment on function as_trigger() is 'HTTP';
create aggregate total(int) (sfunc = int4pl, stype = int);
comment on aggregate total(int) is 'HTTP';
create function twice(_n int) returns int language sql window stable as 'select 2 * _n';
comment on function twice(int) is 'HTTP';
"""

PATHS = {
    "top_a": "/api/top-a",
    "top_b": "/api/top-b",
    "items": "/api/shop/items",
    "audit": "/api/back-office/audit",
    "moved": "/moved",
    "only_modified": "/api/only-modified",
    "uncommented": "/api/uncommented",
}
ANNOTATED = {"top_a", "top_b", "items", "audit"}

SERVED = [
    ("OnlyAnnotated", {}, ANNOTATED),
    ("OnlyWithHttpTag", {"Service:CommentsMode": "OnlyWithHttpTag"}, ANNOTATED),
    ("ParseAll", {"Service:CommentsMode": "ParseAll"}, ANNOTATED | {"moved", "uncommented"}),
    ("Ignore", {"Service:CommentsMode": "Ignore"}, ANNOTATED | {"only_modified", "uncommented"}),
    ("IncludeSchemas", {"Service:IncludeSchemas:0": "shop"}, {"items"}),
    ("ExcludeSchemas", {"Service:ExcludeSchemas:0": "shop"}, ANNOTATED - {"items"}),
    ("SchemaSimilarTo", {"Service:SchemaSimilarTo": "(shop|back%)"}, {"items", "audit"}),
    ("SchemaNotSimilarTo", {"Service:SchemaNotSimilarTo": "(shop|back%)"}, {"top_a", "top_b"}),
    ("IncludeNames", {"Service:IncludeNames:0": "top_a", "Service:IncludeNames:1": "items"}, {"top_a", "items"}),
    ("ExcludeNames", {"Service:ExcludeNames:0": "top_a"}, ANNOTATED - {"top_a"}),
    ("NameSimilarTo", {"Service:NameSimilarTo": "top__"}, {"top_a", "top_b"}),
    ("NameNotSimilarTo", {"Service:NameNotSimilarTo": "top%"}, {"items", "audit"}),
    ("blank filter", {"Service:NameSimilarTo": ""}, ANNOTATED),
    ("filters are added up", {"Service:NameSimilarTo": "%a", "Service:IncludeSchemas:0": "public"}, {"top_a"}),
    ("IncludeLanguages", {"Service:RoutineOptions:IncludeLanguages:0": "PLpgSQL"}, {"top_b"}),
    ("ExcludeLanguages", {"Service:RoutineOptions:ExcludeLanguages:0": "sql"}, {"top_b"}),
    ("routines off", {"Service:RoutineOptions:Enabled": "false"}, set()),
]


@pytest.fixture(scope="module")
def loaded(database: Database) -> Database:
    database.execute(SQL)
    return database


def _served(service: Service) -> set[str]:
    return {name for name, path in PATHS.items() if service.get(path).status_code == 200}


@pytest.mark.parametrize(("settings", "names"), [row[1:] for row in SERVED], ids=[row[0] for row in SERVED])
def test_configuration_selects_the_served_routines(
    loaded: Database, serve_once: Serve, settings: dict[str, str], names: set[str]
) -> None:
    assert _served(serve_once(loaded, settings=settings)) == names


def test_only_plain_functions_and_procedures_are_served(loaded: Database, serve_once: Serve) -> None:
    service = serve_once(loaded)
    statuses = [service.request(m, f"/api/{p}").status_code for p in ("in-c", "as-trigger", "total", "twice")
                for m in ("GET", "POST")]  # fmt: skip
    assert statuses == [404] * 8


PRIVILEGES = """
create role {role} login;
create schema hidden;
create type hidden.secret as (id int);
create type hidden.tone as enum ('low');
create function allowed() returns int language sql stable as 'select 1';
create function forbidden() returns int language sql stable as 'select 2';
create function gives_hidden() returns hidden.secret language sql stable as 'select row(1)::hidden.secret';
create function gives_hidden_set() returns setof hidden.tone language sql stable as $$select 'low'::hidden.tone$$;
create function hidden.inside() returns int language sql stable as 'select 3';
comment on function allowed() is 'HTTP GET /allowed';
comment on function forbidden() is 'HTTP GET /forbidden';
comment on function gives_hidden() is 'HTTP GET /gives-hidden';
comment on function gives_hidden_set() is 'HTTP GET /gives-hidden-set';
comment on function hidden.inside() is 'HTTP GET /inside';
revoke execute on function forbidden() from public;
"""


def test_only_routines_executable_by_the_role_are_served(own_database: Database, serve_once: Serve) -> None:
    """Routines whose result type is in a closed schema are left out without an error (discovery-3)."""
    role = f"{own_database.name}_web"
    own_database.execute(PRIVILEGES.format(role=role))
    service = serve_once(own_database, settings={"ConnectionStrings:Default": own_database.conninfo_as(role)})
    result = {
        path: service.get(path).status_code
        for path in ("/allowed", "/forbidden", "/gives-hidden", "/gives-hidden-set", "/inside")
    }
    assert result == {
        "/allowed": 200,
        "/forbidden": 404,
        "/gives-hidden": 404,
        "/gives-hidden-set": 404,
        "/inside": 404,
    }


@pytest.mark.parametrize(
    "form",
    [
        "postgresql://{user}@{host}:{port}/{database}",
        "host={host} port={port} dbname={database} user={user}",
        "Host={host};Port={port};Database={database};Username={user};Password=unused",
    ],
    ids=["URI", "keywords", "semicolons"],
)
def test_connection_strings_are_accepted_in_three_forms(loaded: Database, serve_once: Serve, form: str) -> None:
    conninfo = form.format(user="postgres", host="127.0.0.1", port=loaded.server.port, database=loaded.name)
    service = serve_once(loaded, settings={"ConnectionStrings:Default": conninfo})
    assert answer(service.get("/api/top-a"))[2] == "1"


@pytest.mark.slow
def test_five_thousand_routines_are_read_in_few_queries(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(
        """
        do $$ begin
          for n in 1..5000 loop
            execute format('create function many_%s(_a int, _b text default null) returns table(x int, y text)'
                           ' language sql stable as %L', n, 'select _a, _b');
            execute format('comment on function many_%s(int, text) is %L', n, 'HTTP');
          end loop;
        end $$;
        """
    )
    own_database.execute("select pg_stat_reset()")
    service = serve_once(own_database)
    assert answer(service.get("/api/many-5000?a=1"))[2] == '[{"x":1,"y":null}]'
    transactions = own_database.value(
        "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"
    )
    assert transactions < 200
