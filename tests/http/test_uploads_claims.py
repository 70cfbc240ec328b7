"""Row commands learn who uploads: in the metadata of the file, and in their session (uploads-14 to
uploads-21)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, member_sql, with_cookie

SQL = """
create table line (number int, about json, who text);
create function keep_line(int, text[], text, json) returns int language sql as
    $$ insert into line values ($1, $4, current_setting('request.user_id', true)) returning number $$;
create function up(_meta json) returns json language sql as 'select _meta';
comment on function up(json) is 'HTTP POST
authorize
user_context
upload for csv
param _meta is upload metadata
row_command = select keep_line($1, $2, $3, $4)';
create function up_open(_meta json) returns json language sql as 'select _meta';
comment on function up_open(json) is 'HTTP POST
allow_anonymous
upload for csv
param _meta is upload metadata
row_command = select keep_line($1, $2, $3, $4)';
"""

FILES = {
    "up_file.sql": "-- HTTP POST\n-- allow_anonymous\n-- upload for csv\n-- param $1 meta is upload metadata\n"
    "-- row_command = select keep_line($1, $2, $3, $4)\nselect $1::json as meta;\nselect count(*) as n from line",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    settings = {**EVERY_SCHEME, **file_settings(folder), "Service:UploadOptions:Enabled": "true"}
    return serve(database, member_sql() + SQL, settings, workers=2)


CSV = {"file": ("s.csv", b"a\nb\n", "text/csv")}


def test_claims_are_part_of_metadata_and_session_settings(service: Service, database: Database) -> None:
    database.execute("truncate line")
    problem(service.post("/api/up", files=CSV), 401)
    headers = with_cookie(service)
    (entry,) = service.post("/api/up", files=CSV, headers=headers).json()
    assert list(entry)[-3:] == ["status", "claims", "lastResult"]
    assert entry["claims"]["user_id"] == "41"
    assert database.fetch("select distinct about -> 'claims' ->> 'user_id', who from line") == [("41", "41")]


def test_anonymous_uploads_have_no_claims(service: Service, database: Database) -> None:
    database.execute("truncate line")
    (entry,) = service.post("/api/up-open", files=CSV).json()
    assert "claims" not in entry
    headers = with_cookie(service)
    (entry,) = service.post("/api/up-open", files=CSV, headers=headers).json()
    assert entry["claims"]["user_id"] == "41"


def test_a_file_of_several_statements_accepts_uploads(service: Service, database: Database) -> None:
    database.execute("truncate line")
    response = service.post("/api/up-file", files=CSV)
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["result1"][0][0]["lastResult"] == 2
    assert body["result2"] == [2]
