"""Rights in the schema `rowcall`: jobs are for services, and other roles of the database only enqueue them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table work (what text);
grant all on work to public;
create function add(_what text) returns text language sql as $$ insert into work values (_what) returning what $$;
comment on function add(text) is 'HTTP POST /add
job';
create function tick() returns void language sql as $$ insert into work values ('tick') $$;
comment on function tick() is 'HTTP POST /tick
schedule ''* * * * *''';
"""
SETTINGS = {"Jobs:Enabled": "true", "Service:RequiresAuthorization": "false"}
FOR_ALL = {
    *("enqueue", "publish", "matches_topic"),
    *("begin_request", "finish_request", "forget_request", "remove_expired_requests"),
}
"""Functions of the schema that every role may execute."""


class Roles(NamedTuple):
    """owner: installs the schema. service: of the service. customer: any other role; the service is a member of it."""

    owner: str
    service: str
    customer: str


@pytest.fixture
def roles(own_database: Database) -> Iterator[Roles]:
    name = own_database.name
    names = Roles(f"{name}_owner", f"{name}_service", f"{name}_customer")
    own_database.execute("".join(f"create role {role} login;" for role in names))
    own_database.execute(f"grant create on database {name} to {names.owner}; grant {names.customer} to {names.service}")
    yield names
    own_database.terminate("usename <> current_user")
    own_database.execute("".join(f"drop owned by {role} cascade; drop role {role};" for role in names))


def install(database: Database, roles: Roles, *grantees: str) -> None:
    with psycopg.connect(database.conninfo_as(roles.owner), autocommit=True) as connection:
        connection.execute(install_sql(grantees).encode())


def as_service(database: Database, roles: Roles, **more: str) -> dict[str, str]:
    return {**SETTINGS, "ConnectionStrings:Default": database.conninfo_as(roles.service), **more}


def runs_job(service: Service) -> None:
    """Enqueue a job, and see that it is done."""
    response = service.post("/add", json={"what": "x"})
    assert response.status_code == 202, response.text
    place = response.headers["location"]
    wait_until(lambda: service.get(place).json()["state"] == "done", "the job is done", 20)
    assert service.get(place).json()["result"] == "x"
    assert service.request("DELETE", place).status_code == 409


def missing_right(roles: Roles) -> str:
    return (
        f"the role {roles.service} may not execute rowcall.add_job and 21 more: "
        f'grant execute on all functions in schema rowcall to "{roles.service}"'
    )


def test_a_service_without_queue_rights_names_the_missing_right(
    own_database: Database, roles: Roles, serve_once: Serve
) -> None:
    install(own_database, roles)
    service = serve_once(own_database, SQL, as_service(own_database, roles))
    assert f"Jobs:Enabled needs a right: {missing_right(roles)}" in service.log
    for line in ("add(text): job", "tick(): schedule"):
        assert f"public.{line} needs a right: {missing_right(roles)}; the endpoint is left out" in service.log
    assert service.post("/add", json={"what": "x"}).status_code == 404
    remedy = missing_right(roles).partition(": ")[2]
    own_database.execute(f"{remedy}; notify rowcall, 'reload'")
    wait_until(lambda: service.post("/add", json={"what": "y"}).status_code == 202, "the endpoint is served", 30)
    runs_job(service)


@pytest.mark.slow
def test_validation_and_audit_name_the_missing_right(own_database: Database, roles: Roles, tmp_path: Path) -> None:
    install(own_database, roles)
    own_database.execute(SQL)
    settings = [f"--{key}={value}" for key, value in as_service(own_database, roles).items()]
    done = rowcall(tmp_path, "--validate", "--strict", *settings)
    assert (done.returncode, missing_right(roles) in done.stdout) == (1, True)
    done = rowcall(tmp_path, "--audit", *settings)
    reason, _, remedy = missing_right(roles).partition(": ")
    assert f"MEDIUM missing-right: Jobs:Enabled\n  it does not work: {reason}\n  → {remedy}\n" in done.stdout
    own_database.execute(remedy)
    assert "needs a right" not in rowcall(tmp_path, "--validate", *settings).stdout
    assert "missing-right" not in rowcall(tmp_path, "--audit", *settings).stdout


@pytest.mark.slow
def test_the_audit_asks_for_the_version_that_protects_jobs(
    own_database: Database, roles: Roles, tmp_path: Path
) -> None:
    install(own_database, roles, roles.service)
    own_database.execute("comment on schema rowcall is 'Stored state of the service rowcall, version 16'")
    settings = [f"--{key}={value}" for key, value in as_service(own_database, roles).items()]
    found = rowcall(tmp_path, "--audit", *settings).stdout
    assert "MEDIUM public-queue: schema rowcall\n  every role of the database may take, end and read jobs" in found


@pytest.mark.slow
def test_an_installation_grants_the_rights_of_a_service(
    own_database: Database, roles: Roles, serve_once: Serve, tmp_path: Path
) -> None:
    connection = f"--ConnectionStrings:Default={own_database.conninfo_as(roles.owner)}"
    assert rowcall(tmp_path, "--install", connection, "--grant-to", roles.service).returncode == 0
    service = serve_once(own_database, SQL, as_service(own_database, roles))
    assert "needs a right" not in service.log
    runs_job(service)
    own_database.execute(
        f"set role {roles.owner}; create function rowcall.of_a_later_version() returns int language sql as 'select 1';"
        "revoke execute on function rowcall.of_a_later_version() from public"
    )
    later = "select has_function_privilege(%s, 'rowcall.of_a_later_version()', 'execute')"
    assert own_database.value(later, roles.service) is True
    printed = rowcall(tmp_path, "--install", "--print", "--grant-to", 'x"y').stdout
    assert 'grant execute on all functions in schema rowcall to "x""y";' in printed
    assert "requires --install" in rowcall(tmp_path, "--grant-to", roles.service).stderr


def test_other_roles_only_enqueue(own_database: Database, roles: Roles, serve_once: Serve) -> None:
    install(own_database, roles, roles.service)
    executable = own_database.fetch(
        "select proname from pg_proc where pronamespace = 'rowcall'::regnamespace"
        " and has_function_privilege(%s, oid, 'execute')",
        roles.customer,
    )
    assert {name for (name,) in executable} == FOR_ALL
    serve_once(own_database, SQL, as_service(own_database, roles))
    with psycopg.connect(own_database.conninfo_as(roles.customer), autocommit=True) as customer:
        for sql in (
            "select * from rowcall.take_of_all_queues(array['POST /add'], 1)",
            "select * from rowcall.list_jobs(null, null, null, null, null, 10)",
            "select * from rowcall.count_deliveries()",
            "select * from rowcall.count_mail()",
            "select * from rowcall.job",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                customer.execute(sql.encode())
        customer.execute("select rowcall.enqueue('POST /add', '{\"what\": \"by a customer\"}')")
    done = "select count(*) from work where what = 'by a customer'"
    wait_until(lambda: own_database.value(done) == 1, "the job has run", 20)


@pytest.mark.slow
def test_a_job_runs_with_the_role_of_its_caller(own_database: Database, roles: Roles, serve_once: Serve) -> None:
    """The role of the caller can neither lock nor finish jobs. Deferred triggers still run with it."""
    install(own_database, roles, roles.service)
    service = serve_once(
        own_database,
        SQL
        + """
        create table ledger (who text, at_commit text);
        grant all on ledger to public;
        create function at_commit() returns trigger language plpgsql as $$
        begin update ledger set at_commit = current_user where who = new.who; return null; end $$;
        create constraint trigger at_commit after insert on ledger deferrable initially deferred
        for each row execute function at_commit();
        create function own() returns text language sql as
        $$ insert into ledger (who) values (current_user) returning who $$;
        comment on function own() is 'HTTP POST /own
        role_from_claim
        job retries 0';
        create function whose(_user_id text) returns text language sql as
        $$ insert into ledger (who) values (_user_id) returning who $$;
        comment on function whose(text) is 'HTTP POST /whose
        role_from_claim
        user_parameters
        job retries 0';
        create function enter(_role text) returns table (status int, user_id text, database_role text) language sql as
        $$ select 200, 'ann', _role $$;
        comment on function enter(text) is 'HTTP POST /enter
        login
        allow_anonymous';
        """,
        as_service(
            own_database,
            roles,
            **{
                "Auth:CookieAuth": "true",
                "Service:AuthenticationOptions:DatabaseRoles:0": roles.customer,
            },
        ),
    )
    with service.new_client() as client:
        assert client.post("/enter", json={"role": roles.customer}).status_code == 200
        response = client.post("/own", json={})
        assert response.status_code == 202, response.text
        place = response.headers["location"]
        wait_until(lambda: client.get(place).json()["state"] in ("done", "failed"), "the job has ended", 20)
        assert (client.get(place).json()["error"], client.get(place).json()["result"]) == (None, roles.customer)
    assert own_database.fetch("select * from ledger") == [(roles.customer, roles.customer)]
    problem(service.post("/own", json={}), 401)
    claims = json.dumps([["user_id", "41"], ["database_role", roles.customer]])
    own_database.execute(f"select rowcall.enqueue('POST /whose', '{{\"userId\": \"7\"}}', _claims => '{claims}')")
    enqueued = "select count(*) from ledger where who <> at_commit"
    wait_until(lambda: own_database.value(enqueued) == 1, "the job enqueued in SQL has run", 20)
    assert own_database.value("select who from ledger where who <> at_commit") == "41"
    assert own_database.value("select at_commit from ledger where who = '41'") == roles.customer
    own_database.execute(
        "delete from ledger; select rowcall.enqueue('POST /own');"
        f"select rowcall.enqueue('POST /own', _claims => '[[\"database_role\", \"{roles.service}\"]]')"
    )
    failed = "select error from rowcall.job where state = 'failed' order by error"
    wait_until(lambda: len(own_database.fetch(failed)) == 2, "both jobs have failed", 20)
    forbidden, unauthorized = (error for (error,) in own_database.fetch(failed))
    assert "POST /own is for users with a database role in the claim database_role" in forbidden
    assert unauthorized == "Unauthorized"
    assert own_database.fetch("select * from ledger") == []


@pytest.mark.slow
def test_an_update_keeps_services_with_grants_working(own_database: Database, roles: Roles, serve_once: Serve) -> None:
    """Roles that deliver webhooks are those of services."""
    older = install_sql().partition("if not exists (select from rowcall.schema_version where version = 17)")[0]
    with psycopg.connect(own_database.conninfo_as(roles.owner), autocommit=True) as connection:
        connection.execute(f"{older.rpartition('do $rowcall$')[0]} commit".encode())
    own_database.execute(f"grant execute on function rowcall.take_deliveries to {roles.service}")
    install(own_database, roles)
    runs_job(serve_once(own_database, SQL, as_service(own_database, roles)))
    may = "select has_function_privilege(%s, 'rowcall.take_jobs(text[], text[], integer)', 'execute')"
    assert own_database.value(may, roles.customer) is False
    for function, granted in (
        ("list_jobs_of(text[], text, text, text, uuid, integer)", True),
        ("keep_jobs(uuid[], integer[])", True),
        ("cancelled_jobs(uuid[])", True),
        ("report_unserved_jobs(text[], text[])", True),
        ("take_webhooks(text[], text[], integer, double precision, double precision, text[])", True),
        ("next_webhook(text[], double precision)", True),
        ("count_deliveries()", True),
        ("count_mail()", False),
    ):
        may = f"select has_function_privilege(%s, 'rowcall.{function}', 'execute')"
        assert own_database.value(may, roles.service) is granted, function
        assert own_database.value(may, roles.customer) is False, function
