"""--endpoints as the real command: what would be served, as JSON (command-9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database

SQL = """
create function list_orders(_customer_id int, _status text default 'open')
returns table (order_id int, placed_at timestamptz) language sql as
$$ select 1, now() $$;
comment on function list_orders is 'HTTP GET
authorize admin, clerk
my_own = value';
create function order_by_id(_id int) returns text language sql as $$ select 'x' $$;
comment on function order_by_id is 'HTTP GET /orders/{_id}
allow_anonymous
raw';
create procedure pack(_box int) language sql as $$ select 1 $$;
comment on procedure pack is 'HTTP';
create function hidden() returns int language sql as $$ select 1 $$;
"""


@pytest.fixture(scope="module")
def listed(database: Database, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    database.execute(SQL)
    folder = tmp_path_factory.mktemp("endpoints")
    done = rowcall(folder, "--endpoints", f"--ConnectionStrings:Default={database.conninfo}")
    assert (done.returncode, done.stderr) == (0, "")
    return {entry["routine"]["name"]: entry for entry in json.loads(done.stdout)}


def test_routines_without_endpoint_are_not_listed(listed: dict[str, dict[str, Any]]) -> None:
    assert set(listed) == {"list_orders", "order_by_id", "pack"}


def test_an_endpoint_is_described_with_its_routine_parameters_and_columns(listed: dict[str, dict[str, Any]]) -> None:
    assert listed["list_orders"] == {
        "method": "GET",
        "path": "/api/list-orders",
        "routine": {
            "schema": "public",
            "name": "list_orders",
            "type": "Function",
            "returnsSet": True,
            "isVoid": False,
            "definition": "function public.list_orders(_customer_id integer, _status text) "
            "returns table(order_id integer, placed_at timestamp with time zone)",
        },
        "parameters": [
            {"name": "customerId", "originalName": "_customer_id", "type": "integer", "hasDefault": False},
            {"name": "status", "originalName": "_status", "type": "text", "hasDefault": True},
        ],
        "returnColumns": [
            {"name": "orderId", "originalName": "order_id", "type": "integer"},
            {"name": "placedAt", "originalName": "placed_at", "type": "timestamp with time zone"},
        ],
        "requestParamType": "QueryString",
        "requiresAuthorization": True,
        "authorizeRoles": ["admin", "clerk"],
        "customParameters": {"my_own": "value"},
    }


def test_members_that_do_not_apply_are_omitted(listed: dict[str, dict[str, Any]]) -> None:
    entry = listed["order_by_id"]
    assert entry["requiresAuthorization"] is False
    assert entry["raw"] is True
    assert "authorizeRoles" not in entry
    assert entry["path"] == "/orders/{_id}"
    assert entry["parameters"][0]["isPathParameter"] is True


def test_a_procedure_takes_a_body_and_gives_nothing(listed: dict[str, dict[str, Any]]) -> None:
    entry = listed["pack"]
    assert entry["routine"]["type"] == "Procedure"
    assert entry["routine"]["isVoid"] is True
    assert entry["requestParamType"] == "BodyJson"
    assert "returnColumns" not in entry


def test_an_unreachable_database_is_reported_and_ends_with_1(tmp_path: Path) -> None:
    done = rowcall(
        tmp_path,
        "--endpoints",
        "--ConnectionStrings:Default=Host=127.0.0.1;Port=1;Database=x",
        "--ConnectionSettings:RetryOptions:Enabled=false",
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("rowcall: cannot read the database: ")
