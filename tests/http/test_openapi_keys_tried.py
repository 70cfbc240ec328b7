"""A document with the scheme that `Auth:ApiKey` derives, and with query parameters described by their `content`, tried
out by schemathesis with all of its checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.test_openapi_tried import VERSIONS, run_schemathesis

pytestmark = pytest.mark.slow

SQL = """
-- json and not jsonb, which refuses U+0000 although JSON has it.
create type spot as (x int, label text);
create table calls (path text);
create function find_key(_digest text) returns table (user_id int) language sql stable as
    $$select 41 where _digest = encode(sha256('right'), 'hex')$$;
create function locked(_n int) returns int language sql volatile as
    $$insert into calls values ('locked'); select _n$$;
comment on function locked is 'HTTP GET /locked
authorize';
create function filtered(_filter json) returns json language sql volatile as
    $$insert into calls values ('filtered ' || json_typeof(_filter)); select _filter$$;
comment on function filtered is 'HTTP GET /filtered
authorize';
create table place (id int primary key, at spot);
insert into place values (1, (7, 'here')), (2, (8, 'there'));
comment on table place is 'HTTP GET /place
authorize';
"""
SETTINGS = {
    "Service:OpenApiOptions:Enabled": "true",
    "Service:CrudSource:Enabled": "true",
    "Auth:ApiKey:Enabled": "true",
    "Auth:ApiKey:Header": "X-Till-Key",
    "Auth:ApiKey:Command": "select * from find_key($1)",
}
KEY = '[auth.openapi.apiKeyAuth]\napi_key = "right"\n'


@pytest.fixture(scope="module")
def services(database: Database, serve: Serve) -> dict[str, Service]:
    database.execute(SQL)
    return {
        version: serve(database, settings={**SETTINGS, "Service:OpenApiOptions:SpecVersion": version})
        for version in VERSIONS
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_the_service_conforms_to_its_document_for_callers_with_a_key(
    database: Database, services: dict[str, Service], version: str, tmp_path: Path
) -> None:
    database.execute("truncate calls")
    output = run_schemathesis(services[version], tmp_path, KEY, count=10)
    assert "Authentication failed" not in output, output
    called = {path for (path,) in database.fetch("select distinct path from calls")}
    assert {"locked", "filtered object", "filtered array", "filtered string"} <= called


@pytest.mark.parametrize("version", VERSIONS)
def test_the_service_conforms_to_its_document_for_anonymous_callers(
    services: dict[str, Service], version: str, tmp_path: Path
) -> None:
    assert "Authentication failed" in run_schemathesis(services[version], tmp_path, "", count=4)
