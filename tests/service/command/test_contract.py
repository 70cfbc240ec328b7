"""`--contract`: written, compared, and the exit code that says how bad it is (docs/contract.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowcall.core.documents.contract import contract_of
from rowcall.core.documents.contract_changes import changes
from rowcall.core.endpoint.capabilities import NoticeLevel
from rowcall.service.installation.script import install_sql
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.snapshots import read_snapshot

SQL = """
create function find_parcels(_depot text, _limit int default 5) returns table (id int, note text)
    language sql stable as $$ select 1, 'x' $$;
comment on function find_parcels is 'HTTP GET
authorize clerk';
create function ping() returns void language sql as '';
comment on function ping is 'HTTP';
create function inner_one() returns void language sql as '';
comment on function inner_one is 'HTTP
internal';
"""
CHANGE = """
drop function ping();
drop function find_parcels;
create function find_parcels(_depot text, _limit int) returns table (id int) language sql stable as 'select 1';
comment on function find_parcels is 'HTTP GET
authorize clerk';
"""
CHANGES = """breaking: GET /api/find-parcels: each of the response has no note any more
breaking: GET /api/find-parcels: parameter limit is now required
breaking: POST /api/ping: removed
contract.json: 3 breaking
"""
RENAMED = """breaking: POST /api/ping: the function ping of the Python client is renamed to ping_post
breaking: POST /api/ping: the function publicPing of the TypeScript client is renamed to publicPingPost
compatible: DELETE /api/ping: added
contract.json: 2 breaking, 1 compatible
"""


@pytest.mark.slow
def test_a_change_that_breaks_clients_is_found(own_database: Database, tmp_path: Path) -> None:
    connection = f"--ConnectionStrings:Default={own_database.conninfo}"
    own_database.execute(SQL)
    done = rowcall(tmp_path, "--contract", "contract.json", connection)
    assert (done.returncode, done.stdout) == (0, "contract.json is written: 2 endpoints\n"), done.stderr
    own_database.execute(CHANGE)
    done = rowcall(tmp_path, "--contract", "contract.json", "--check", connection)
    assert (done.returncode, done.stdout) == (4, CHANGES), done.stderr


def test_a_renamed_function_of_a_client_is_reported(own_database: Database, tmp_path: Path) -> None:
    clients = [
        f"--Service:{section}:{key}={value}"
        for section, path in (("ClientCodeGen", "{0}.ts"), ("PythonClientCodeGen", "{0}.py"))
        for key, value in (("Enabled", "true"), ("FilePath", path))
    ]
    arguments = ["--contract", "contract.json", f"--ConnectionStrings:Default={own_database.conninfo}", *clients]
    own_database.execute("create function ping() returns void language sql as ''; comment on function ping is 'HTTP';")
    done = rowcall(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    own_database.execute(
        "create function no_ping() returns void language sql as ''; "
        "comment on function no_ping is 'HTTP DELETE /api/ping';"
    )
    done = rowcall(tmp_path, *arguments, "--check")
    assert (done.returncode, done.stdout) == (4, RENAMED), done.stderr


@pytest.mark.parametrize("text", [None, "{}"])
def test_a_missing_contract_is_reported(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "contract.json").write_text(text, encoding="utf-8")
    done = rowcall(tmp_path, "--contract", "contract.json", "--check")
    assert done.returncode == 1
    assert "contract.json" in done.stderr


OTHER_RESPONSES = {
    "job": ("", "job"),
    "file": ("content", "download"),
    "sign-in": ("", "login"),
    "sign-out": ("", "logout"),
    "proxy": ("", "proxy http://127.0.0.1:1"),
    "mail": ("to", "send_mail"),
    "tokens": ("email", "issue_token invitation for 1 day subject email"),
}
"""Kind of the response → name of the second column, and the annotation."""
CAPABILITIES = {
    "Auth:CookieAuth": "true",
    "Jobs:Enabled": "true",
    "Mail:Enabled": "true",
    "Mail:From": "a@example.com",
    "Mail:Host": "127.0.0.1",
    "Service:ProxyOptions:Enabled": "true",
}


def test_a_response_of_another_kind_is_reported(own_database: Database) -> None:
    def contract() -> dict[str, Any]:
        snapshot = read_snapshot(own_database, CAPABILITIES)
        return contract_of(snapshot.endpoints, snapshot.types_of, camel=True, level=NoticeLevel.INFO, functions={})

    own_database.execute(install_sql())
    for number, (column, _) in enumerate(OTHER_RESPONSES.values()):
        function = f"f{number}()"
        columns = f'id text, "{column or "note"}" text, subject text, text text'
        own_database.execute(
            f"create function {function} returns table ({columns}) language sql as $$ select '', '', '', '' $$;"
            f"comment on function {function} is 'HTTP POST /f{number}'"
        )
    before = contract()
    for number, (_, line) in enumerate(OTHER_RESPONSES.values()):
        own_database.execute(f"comment on function f{number}() is E'HTTP POST /f{number}\\n{line}'")
    after = contract()
    assert [str(change) for change in changes(before, after)] == [
        f"breaking: POST /f{number}: the kind of the response is {kind}, no longer result"
        for number, kind in enumerate(OTHER_RESPONSES)
    ]
    assert changes(after, contract()) == []
    # No client sees the result of a routine that runs as a job.
    own_database.execute(
        "drop function f0(); create function f0() returns int language sql as 'select 1';"
        "comment on function f0() is E'HTTP POST /f0\\njob'"
    )
    assert changes(after, contract()) == []


@pytest.mark.slow
def test_exports_are_formats_of_a_response(own_database: Database, tmp_path: Path) -> None:
    arguments = [f"--ConnectionStrings:Default={own_database.conninfo}", "--contract", "contract.json"]
    own_database.execute(
        "create function rows() returns table (id int, n int) language sql as 'select 1, 1';"
        "comment on function rows() is 'HTTP GET';"
        "create function value() returns int language sql as 'select 1'; comment on function value() is 'HTTP GET'"
    )
    exports = ["--Exports:Enabled=true", "--Exports:Formats:0=csv", "--Exports:Formats:1=jsonl"]
    assert rowcall(tmp_path, *arguments, *exports).returncode == 0
    done = rowcall(tmp_path, *arguments, "--check", *exports[:2])
    assert (done.returncode, done.stdout) == (
        4,
        "breaking: GET /api/rows: the response can no longer be application/jsonl\n"
        "breaking: GET /api/rows: the response can no longer be application/x-ndjson\n"
        "contract.json: 2 breaking\n",
    ), done.stderr


@pytest.mark.slow
def test_table_formats_are_part_of_a_response(own_database: Database, tmp_path: Path) -> None:
    arguments = [f"--ConnectionStrings:Default={own_database.conninfo}", "--Service:TableFormatOptions:Enabled=true"]
    arguments += ["--contract", "contract.json"]
    for name in ("fixed", "chosen"):
        own_database.execute(
            f"create function {name}(_as text default '') returns table (id int, n int) language sql as 'select 1, 1';"
            f"comment on function {name} is 'HTTP GET'"
        )
    assert rowcall(tmp_path, *arguments).returncode == 0
    own_database.execute("comment on function fixed is E'HTTP GET\\ntable_format html'")
    own_database.execute("comment on function chosen is E'HTTP GET\\ntable_format {as}'")
    done = rowcall(tmp_path, *arguments, "--check")
    excel = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    assert (done.returncode, done.stdout) == (
        4,
        "breaking: GET /api/fixed: the response is text/html; charset=utf-8, no longer application/json\n"
        f"compatible: GET /api/chosen: the response can also be {excel}\n"
        "compatible: GET /api/chosen: the response can also be text/html; charset=utf-8\n"
        "contract.json: 1 breaking, 2 compatible\n",
    ), done.stderr
