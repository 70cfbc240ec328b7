"""`rowcall --audit` on the database of the manual page, and on a database without findings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowcall.service.installation.script import install_sql
from tests.docs.pages import FOLDER, read_page
from tests.harness.command import rowcall
from tests.harness.database import Database, create_database, drop_database
from tests.harness.postgres import PostgresServer
from tests.http.conftest import Serve

PAGE = read_page(FOLDER / "audit.md")
_TEXT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def clerk(own_database: Database) -> Iterator[str]:
    """Provide a role with few rights, named after the database, because concurrent tests have one too."""
    name = f"{own_database.name}_clerk"
    own_database.execute(f"create role {name} login; revoke create on schema public from public")
    yield name
    own_database.execute(f"drop owned by {name}; drop role {name}")


def audit(folder: Path, database: Database, role: str, *arguments: str) -> tuple[int, str]:
    done = rowcall(folder, "--audit", f"--ConnectionStrings:Default={database.conninfo_as(role)}", *arguments)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.slow
def test_manual_page_shows_the_output_of_the_audit_command(own_database: Database, clerk: str, tmp_path: Path) -> None:
    own_database.execute(PAGE.sql.replace("clerk", clerk))
    settings = [f"--{key}={value}" for key, value in PAGE.settings.items()]
    code, message = audit(tmp_path, own_database, clerk, *settings)
    match = _TEXT.search((FOLDER / "audit.md").read_text(encoding="utf-8"))
    assert match is not None
    owner = own_database.value("select current_user")
    promised = match[1].replace("clerk", clerk).replace("postgres", owner)
    assert message == promised
    assert code == 1
    code, message = audit(tmp_path, own_database, clerk, "--json", *settings)
    report = json.loads(message)
    assert (code, report["passed"], report["role"], report["endpoints"]) == (1, False, clerk, 4)
    assert report["counts"] == {"high": 3, "medium": 4, "low": 1}
    assert list(report["findings"][0]) == ["severity", "code", "about", "message", "remedy"]
    assert "1234" not in message


@pytest.mark.slow
def test_schedules_webhooks_jobs_and_batch_routes_are_listed(own_database: Database, tmp_path: Path) -> None:
    """Schedules, subscribers of webhooks, and the routes of jobs and batches."""
    own_database.execute(install_sql())
    own_database.execute("""
        create function clean() returns void language sql as '';
        comment on function clean() is 'schedule 0 3 * * * timezone Europe/Berlin';
        create function later() returns void language sql as '';
        comment on function later() is 'HTTP POST /later
        job';
        create function hook(_event jsonb) returns void language sql as '';
        comment on function hook(jsonb) is 'HTTP POST /hook
        body_parameter_name _event
        verify_webhook github';
    """)
    secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u"
    settings = {
        "Jobs:Enabled": "true",
        "Batch:Enabled": "true",
        "Webhooks:Enabled": "true",
        "Webhooks:Secrets:github": "a secret of GitHub",
        "Webhooks:Subscribers:shop:Url": "https://shop.example/hooks?key=hidden",
        "Webhooks:Subscribers:shop:Secret": secret,
        "Webhooks:Subscribers:shop:Topics:0": "order.*",
    }
    arguments = [f"--ConnectionStrings:Default={own_database.conninfo}", *(f"--{k}={v}" for k, v in settings.items())]
    done = rowcall(tmp_path, "--audit", "--json", *arguments)
    report = json.loads(done.stdout)
    assert report["schedules"] == [
        {"schedule": "0 3 * * *", "timezone": "Europe/Berlin", "endpoint": "POST /api/clean", "part": "public.clean()"}
    ]
    (subscriber,) = report["subscribers"]
    assert (subscriber["name"], subscriber["topics"]) == ("shop", ["order.*"])
    conditions = {(route["method"], route["path"]): route["conditions"] for route in report["routes"]}
    assert {("POST", "/batch"), ("GET", "/jobs"), ("GET", "/jobs/{id}"), ("DELETE", "/jobs/{id}")} <= conditions.keys()
    assert conditions["POST", "/hook"] == "a webhook with a valid signature (github)"
    printed = rowcall(tmp_path, "--audit", *arguments).stdout
    assert re.search(r"^0 3 \* \* \* +Europe/Berlin +POST /api/clean +public\.clean\(\)$", printed, re.MULTILINE)
    assert re.search(r"^shop +https://shop\.example/\S* +order\.\*$", printed, re.MULTILINE)
    assert not any(text in done.stdout + printed for text in (secret, "a secret of GitHub", "hidden"))


@pytest.mark.slow
def test_ineffective_row_security_policies_and_role_rights_are_reported(
    own_database: Database, clerk: str, tmp_path: Path
) -> None:
    """Policies of a table that the service owns have no effect; once they are forced, only intended findings remain."""
    own_database.execute(f"""
        create table letter (id int, owner_id int);
        alter table letter enable row level security;
        alter table letter owner to {clerk};
        create function read_letters() returns setof letter language sql stable security definer
        begin atomic select * from letter; end;
        comment on function read_letters() is E'HTTP GET\\nauthorize';
        alter function read_letters() owner to {clerk};
        grant pg_read_server_files to {clerk}; alter role {clerk} createdb;
    """)
    on = "--Auth:JwtAuth=true", "--Auth:JwtSecret=nTx7yQ2vKp9wRb4sLd8fHg3jZc6mVa1eUo5iXr0tYqWk"
    report = json.loads(audit(tmp_path, own_database, clerk, "--json", *on)[1])
    values = {(item["severity"], item["code"], item["about"]) for item in report["findings"]}
    assert values == {
        ("high", "membership", f"role {clerk}"),
        ("medium", "role-attribute", f"role {clerk}"),
        ("high", "policies-without-effect", "public.letter"),
    }
    own_database.execute(f"""
        revoke pg_read_server_files from {clerk}; alter role {clerk} nocreatedb;
        alter table letter force row level security
    """)
    assert audit(tmp_path, own_database, clerk, "--strict", *on) == (
        0,
        f"0 of 1 endpoints are open to anonymous callers; the service connects as {clerk}\n\nNothing found\n\n"
        "method  path               access           authentication  conditions  answered by\n"
        "POST    /api/jwt/refresh   anyone           none                        service\n"
        "GET     /api/read-letters  signed-in users  any scheme                  public.read_letters()\n",
    )


@pytest.mark.slow
def test_databases_of_all_sources_are_audited(
    own_database: Database, postgres: PostgresServer, clerk: str, tmp_path: Path
) -> None:
    other = create_database(postgres)
    try:
        other.execute(f"""
            revoke create on schema public from public;
            create table parcel (id int primary key); grant select, delete on parcel to {clerk};
            comment on table parcel is E'HTTP GET\\nauthorize';
            create function parcels() returns bigint language sql security definer as 'select count(*) from parcel';
            comment on function parcels() is E'HTTP GET\\nauthorize';
        """)
        own_database.execute("""
            create function here() returns int language sql stable as 'select 1';
            comment on function here() is E'HTTP GET\\nauthorize';
        """)
        key = "--Service:RoutineOptions:ReadMetadataFromConnections"
        settings = [f"{key}:0=default", f"{key}:1=reports", "--Service:CrudSource:Enabled=true"]
        settings += [f"--ConnectionStrings:Reports={other.conninfo_as(clerk)}", "--Auth:CookieAuth=true"]
        code, text = audit(tmp_path, own_database, clerk, "--json", *settings)
    finally:
        drop_database(other)
    values = {(item["severity"], item["code"], item["about"]) for item in json.loads(text)["findings"]}
    where = "(connection Reports)"
    assert {
        ("high", "definer-search-path", f"public.parcels() {where}"),
        ("medium", "no-policies", f"public.parcel {where}"),
        ("low", "grants", f"public.parcel {where}"),
    } <= values
    assert all(about.endswith(where) for _, code, about in values if code not in ("cookie-secure", "opened")), values
    assert code == 1


@pytest.mark.slow
def test_views_without_security_invoker_are_reported(own_database: Database, clerk: str, tmp_path: Path) -> None:
    if own_database.value("select current_setting('server_version_num')::int") < 150_000:
        pytest.skip("security_invoker needs PostgreSQL 15")
    own_database.execute(f"""
        create table letter (id int);
        create view by_owner as select * from letter;
        create view by_caller with (security_invoker = true) as select * from letter;
        comment on view by_owner is 'HTTP GET
        authorize'; comment on view by_caller is 'HTTP GET
        authorize';
        grant select on letter, by_owner, by_caller to {clerk};
    """)
    report = json.loads(audit(tmp_path, own_database, clerk, "--json", "--Service:CrudSource:Enabled=true")[1])
    assert [item["about"] for item in report["findings"] if item["code"] == "view"] == ["public.by_owner"]


def test_secrets_in_generated_documents_are_reported(own_database: Database, clerk: str, tmp_path: Path) -> None:
    """Prose, defaults of parameters and sources of routines are published: the audit compares them with the secrets."""
    secret = "nTx7yQ2vKp9wRb4sLd8fHg3jZc6mVa1eUo5iXr0tYqWk"
    own_database.execute(f"""
        create function look(_key text default 'swordfish') returns int language sql stable as $$
            select 1 /* {secret} */ $$;
        comment on function look(text) is E'HTTP GET\\nauthorize
        basic_auth kim swordfish\\nmcp Ask with "swordfish".';
        create function quiet() returns int language sql stable as 'select 1';
        comment on function quiet() is E'HTTP GET\\nauthorize\\nbasic_auth kim clownfish\\nX-Key: clownfish';
    """)
    on = [
        "--Auth:JwtAuth=true",
        f"--Auth:JwtSecret={secret}",
        "--Service:OpenApiOptions:Enabled=true",
        "--Service:McpOptions:Enabled=true",
        "--Service:ClientCodeGen:Enabled=true",
        "--Service:ClientCodeGen:FilePath=client.ts",
        "--Service:ClientCodeGen:BySchema=false",
        "--Service:HttpFileOptions:Enabled=true",
        "--Service:HttpFileOptions:CommentHeader=Full",
        "--Service:HttpFileOptions:Name=all",
    ]
    code, message = audit(tmp_path, own_database, clerk, "--json", *on)
    body = [item for item in json.loads(message)["findings"] if item["code"] == "published-secret"]
    assert code == 1
    password = "the document contains a password of basic_auth in the comment of GET /api/look"
    assert {(item["about"], item["message"]) for item in body} == {
        ("client.ts", password),
        ("all_public.http", password),
        ("all_public.http", "the document contains Auth:JwtSecret"),
        ("/mcp tools/list", password),
    }
    assert "swordfish" not in message
    assert secret not in message
    assert list(tmp_path.iterdir()) == []


def test_start_logs_public_endpoints(own_database: Database, serve_once: Serve) -> None:
    own_database.execute("""
        create function look() returns int language sql stable as 'select 1';
        comment on function look() is E'HTTP GET\\nallow_anonymous';
        create function leave(_x int) returns int language sql as 'select _x';
        comment on function leave(int) is E'HTTP POST\\nallow_anonymous';
        create function closed() returns int language sql as 'select 1';
        comment on function closed() is E'HTTP POST';
    """)
    service = serve_once(own_database, settings={"Service:RequiresAuthorization": None})
    line = (
        "2 of 3 endpoints are open to anonymous callers, 1 of them may write (POST /api/leave); "
        "rowcall --audit lists details"
    )
    service.wait_for_log(line)
