"""Which owners may publish endpoints: in a schema that no setting names, objects of other owners are not served."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import jwt
import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = pytest.mark.attack

_numbers = itertools.count(1)


class Roles:
    """Roles of the server are shared by all its databases, so each test has its own."""

    def __init__(self, database: Database, suffix: str) -> None:
        self.database = database
        self.service = f"service_{suffix}"
        self.group = f"group_{suffix}"
        self.guest = f"guest_{suffix}"
        self.names = (self.service, self.group, self.guest)
        database.execute("".join(f"create role {name} login;" for name in self.names))
        database.execute(f"grant {self.group} to {self.service}")
        for name in self.names:
            database.execute(f"create schema {name} authorization {name}; grant usage on schema {name} to public")

    def drop(self) -> None:
        for name in self.names:
            self.database.execute(f"alter database {self.database.name} owner to current_user")
            self.database.execute(f"drop owned by {name} cascade")
            self.database.execute(f"drop role {name}")

    def as_guest(self, sql: str) -> None:
        with psycopg.connect(self.database.conninfo_as(self.guest), autocommit=True) as connection:
            connection.execute(sql.encode())


@pytest.fixture
def roles(own_database: Database) -> Iterator[Roles]:
    made = Roles(own_database, f"{os.getpid()}_{next(_numbers)}")
    yield made
    made.drop()


def function(name: str, path: str, parameters: str = "", says: str = "in") -> str:
    return (
        f"create function {name}({parameters}) returns text language sql stable as $$select '{says}'$$;"
        f"comment on function {name} is 'HTTP GET {path}';"
    )


def published(roles: Roles) -> None:
    """One function of each, in a schema of its own; and one of a superuser."""
    for name in roles.names:
        roles.database.execute(f"set role {name};" + function(f"{name}.own", f"/{name.split('_')[0]}"))
    roles.database.execute(function("of_superuser", "/superuser"))


def serving(roles: Roles, serve_once: Serve, **settings: str) -> Service:
    return serve_once(
        roles.database,
        settings={"ConnectionStrings:Default": roles.database.conninfo_as(roles.service), **settings},
    )


def found(service: Service) -> dict[str, int]:
    return {name: service.get(f"/{name}").status_code for name in ("service", "group", "superuser", "guest")}


TRUSTED = {"service": 200, "group": 200, "superuser": 200, "guest": 404}


def test_a_function_of_an_untrusted_owner_is_left_out_and_reported(roles: Roles, serve_once: Serve) -> None:
    published(roles)
    service = serving(roles, serve_once)
    assert found(service) == TRUSTED
    line = service.wait_for_log("Service:TrustedOwners")
    assert "Service:IncludeSchemas" in line
    assert roles.guest in line
    assert service.log.count("Service:TrustedOwners") == 1


def test_a_superuser_as_service_role_trusts_no_additional_owners(roles: Roles, serve_once: Serve) -> None:
    """To PostgreSQL a superuser is a member of every role: a superuser as the service's role would trust all owners."""
    published(roles)
    service = serve_once(roles.database)
    assert found(service) == {**TRUSTED, "group": 404, "service": 404}


def test_the_owner_of_the_database_is_trusted(roles: Roles, serve_once: Serve) -> None:
    published(roles)
    roles.database.execute(f"alter database {roles.database.name} owner to {roles.guest}")
    assert found(serving(roles, serve_once))["guest"] == 200


def test_owners_in_included_schemas_are_trusted(roles: Roles, serve_once: Serve) -> None:
    published(roles)
    schemas = (*roles.names, "public")
    service = serving(roles, serve_once, **{f"Service:IncludeSchemas:{n}": name for n, name in enumerate(schemas)})
    assert found(service) == dict.fromkeys(TRUSTED, 200)
    assert "Service:TrustedOwners" not in service.log


def test_owners_in_trusted_owners_are_trusted(roles: Roles, serve_once: Serve) -> None:
    published(roles)
    service = serving(roles, serve_once, **{"Service:TrustedOwners:0": roles.guest})
    assert found(service) == dict.fromkeys(TRUSTED, 200)


def test_a_star_trusts_all_owners_and_is_logged(roles: Roles, serve_once: Serve) -> None:
    published(roles)
    service = serving(roles, serve_once, **{"Service:TrustedOwners:0": "*"})
    assert found(service) == dict.fromkeys(TRUSTED, 200)
    assert "WRN" in service.wait_for_log("Service:TrustedOwners")


def test_tables_and_types_of_untrusted_owners_are_left_out(roles: Roles, serve_once: Serve) -> None:
    roles.database.execute(
        f"set role {roles.guest}; create table {roles.guest}.notes (id int primary key);"
        f"grant all on {roles.guest}.notes to {roles.service};"
        f"comment on table {roles.guest}.notes is 'HTTP GET /notes'"
    )
    service = serving(roles, serve_once, **{"Service:CrudSource:Enabled": "true"})
    problem(service.get("/notes"), 404)
    assert roles.guest in service.wait_for_log("Service:TrustedOwners")


LOGIN = """create function {schema}.sign_in(_nick text) returns table (user_id text) language sql
as $$select '{who}'$$;
comment on function {schema}.sign_in(text) is E'HTTP POST /sign-in\\nlogin'"""


def test_an_owner_cannot_replace_the_route_of_another(roles: Roles, serve_once: Serve) -> None:
    """Both are trusted; the later one has another owner, and does not get the route of the first."""
    roles.database.execute(f"set role {roles.service};" + LOGIN.format(schema=roles.service, who="right"))
    roles.as_guest(LOGIN.format(schema=roles.guest, who="wrong"))
    settings = {"Auth:JwtAuth": "true", "Auth:JwtSecret": "x" * 40, "Service:TrustedOwners:0": roles.guest}
    service = serving(roles, serve_once, **settings)
    token = service.post("/sign-in", json={"nick": "x"}).json()["accessToken"]
    assert jwt.decode(token, "x" * 40, algorithms=["HS256"])["user_id"] == "right"
    line = service.wait_for_log(f"{roles.guest}.sign_in")
    assert "owner" in line


def test_an_overload_of_another_owner_is_not_added(roles: Roles, serve_once: Serve) -> None:
    roles.database.execute(f"set role {roles.service};" + function(f"{roles.service}.pay", "/pay", "_n int", "right"))
    roles.as_guest(function(f"{roles.guest}.pay", "/pay", "_n int, _m int default 0", "wrong"))
    service = serving(roles, serve_once, **{"Service:TrustedOwners:0": roles.guest})
    assert service.get("/pay?n=1").text == "right"
    assert service.get("/pay?n=1&m=2").status_code == 404


def test_an_equivalent_path_template_of_another_owner_is_not_served(roles: Roles, serve_once: Serve) -> None:
    """Of two such templates the earlier one would be served, and schemas come by their names."""
    roles.database.execute(f"set role {roles.service};" + function(f"{roles.service}.z", "/z/{_a}", "_a text", "right"))
    roles.as_guest(function(f"{roles.guest}.z", "/z/{_b}", "_b text", "wrong"))
    service = serving(roles, serve_once, **{"Service:TrustedOwners:0": roles.guest})
    assert service.get("/z/1").text == "right"


# --- notify --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_notifications_of_untrusted_roles_cause_almost_no_work(roles: Roles, serve_once: Serve) -> None:
    """NOTIFY cannot be forbidden, so it is a hint: the catalogue is looked at once a second at most, and read again
    where it has changed."""
    published(roles)
    service = serving(roles, serve_once)
    with psycopg.connect(roles.database.conninfo_as(roles.guest), autocommit=True) as connection:
        for _ in range(200):
            connection.execute("notify rowcall, 'reload'")
    later = function(f"{roles.service}.later", "/later")
    roles.database.execute(f"set role {roles.service}; {later} notify rowcall, 'reload'")
    wait_until(lambda: service.get("/later").status_code == 200, "the new function is served")
    assert service.log.count("schema snapshot ") <= 2
