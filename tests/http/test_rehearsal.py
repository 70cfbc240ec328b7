"""`rowcall --validate` does what a start does, except serving."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rowcall.service.command.configuration_files import load_configuration
from rowcall.service.command.switches import File as ConfigFile
from tests.harness.command import rowcall
from tests.harness.database import Database


def validate(folder: Path, database: Database, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = rowcall(folder, "--validate", "--json", f"--ConnectionStrings:Default={database.conninfo}", *arguments)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--HttpServer:Workers=0"], "HttpServer:Workers"),
        (["--ErrorHandlingOptions:ErrorCodePolicies:0:Name=x", "--ErrorHandlingOptions:ErrorCodePolicies:0:ErrorCodes:"
          "P0001:StatusCode=4000"], "4000"),
        (["--Auth:JwtAuth=true"], "JwtSecret"),
        (["--RateLimiterOptions:Enabled=true", "--RateLimiterOptions:Policies:0:Type=Concurrency"], "have names"),
        (["--Log:ToFile=true", "--Log:FilePath=/proc/none/log.txt"], "/proc/none"),
        (["--Urls=https://localhost:8443"], "certificate"),
        (["--Service:SqlFileSource:FilePattern=broken.sql"], "broken.sql"),
        (["--Service:RoutineOptions:ReadMetadataFromConnections:0=nowhere"], "nowhere"),
    ],
)  # fmt: skip
def test_faults_that_would_stop_a_start_are_reported(
    tmp_path: Path, own_database: Database, arguments: list[str], expected: str
) -> None:
    (tmp_path / "broken.sql").write_text("-- HTTP GET\nselect * from nowhere_at_all;\n")
    code, report = validate(tmp_path, own_database, *arguments)
    assert (code, report["valid"]) == (1, False)
    assert expected in "\n".join((*report["errors"], *report["startErrors"]))


def test_warnings_are_reported_and_strict_makes_them_errors(tmp_path: Path, own_database: Database) -> None:
    own_database.execute(
        "create function look() returns int language sql stable as 'select 1';"
        "comment on function look() is 'HTTP GET /look\nauthorise boss'"
    )
    code, report = validate(tmp_path, own_database)
    assert (code, report["endpoints"]) == (0, 0)
    assert report["leftOut"] == [
        "public.look(): it is not exposed, because a line of its comment should protect it and does not"
    ]
    assert any("did you mean 'authorize'" in warning for warning in report["startWarnings"])
    assert validate(tmp_path, own_database, "--strict")[0] == 1


def test_a_faultless_configuration_reports_nothing(tmp_path: Path, own_database: Database) -> None:
    code, report = validate(tmp_path, own_database, "--strict")
    assert (code, report["startErrors"], report["startWarnings"]) == (0, [], [])


def test_a_missing_env_file_is_reported(tmp_path: Path, own_database: Database) -> None:
    (tmp_path / "own.json").write_text(json.dumps({"Config": {"EnvFile": "secrets.env"}}))
    _, report = validate(tmp_path, own_database, "own.json")
    assert any("secrets.env" in warning for warning in report["startWarnings"])


def test_a_configuration_of_npgsqlrest_is_accepted_unchanged(tmp_path: Path, own_database: Database) -> None:
    settings = {"NpgsqlRest": {"UrlPathPrefix": "/v1"}, "ConnectionStrings": {"Default": own_database.conninfo}}
    (tmp_path / "appsettings.json").write_text(json.dumps(settings))
    done = rowcall(tmp_path, "appsettings.json", "--config", "UrlPathPrefix")
    assert '"UrlPathPrefix": "/v1"' in done.stdout
    loaded = load_configuration([ConfigFile("appsettings.json")], (), {}, tmp_path)
    assert [note.message for note in loaded.notes].count("The section NpgsqlRest is read as Service") == 1


def test_a_former_name_of_a_key_is_a_warning_of_the_start(tmp_path: Path, own_database: Database) -> None:
    (tmp_path / "own.json").write_text(json.dumps({"Service": {"ServerSentEvents": {"SlowReaderPatience": "2s"}}}))
    code, report = validate(tmp_path, own_database, "own.json")
    assert code == 0
    assert any("SlowReaderTimeout" in warning for warning in report["startWarnings"])
