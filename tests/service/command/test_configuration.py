"""--config, --config-schema, --validate and --init as the real command (command-5 to command-7; command-6 to
command-9)."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from psycopg.conninfo import conninfo_to_dict

from tests.harness.command import COMMAND, clean_environment, rowcall
from tests.harness.database import Database


def without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))


def in_terminal(folder: Path, *arguments: str) -> str:
    """What the command writes when its output is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=clean_environment(), stdout=theirs, stdin=subprocess.DEVNULL
    ) as process:
        os.close(theirs)
        message = b""
        while True:
            try:
                some = os.read(ours, 65536)
            except OSError:  # Linux says so at the end
                break
            if not some:
                break
            message += some
    os.close(ours)
    assert process.returncode == 0
    return message.decode()


def test_config_prints_a_valid_configuration_file(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--config")
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "printed.json").write_text(done.stdout)
    again = rowcall(tmp_path, "printed.json", "--config")
    assert (again.returncode, again.stdout) == (0, done.stdout)


def test_config_shows_the_merged_files_environment_and_command_line(tmp_path: Path) -> None:
    (tmp_path / "rowcall.json").write_text(
        '{"Config": {"AddEnvironmentVariables": true}, "Urls": "{HOST}", "Service": {"UrlPathPrefix": "/file"}}'
    )
    done = rowcall(tmp_path, "--Service:UrlPathPrefix=/line", "--config", HOST="http://h", STARTUPMESSAGE="hello")
    shown = json.loads(without_comments(done.stdout))
    assert shown["Urls"] == "http://h"
    assert shown["StartupMessage"] == "hello"
    assert shown["Service"]["UrlPathPrefix"] == "/line"


@pytest.mark.parametrize("arguments", [("--config", "kebab"), ("--config=KEBAB",), ("--Urls=x", "--CONFIG", "Kebab")])
def test_config_with_a_filter_prints_matching_keys(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = rowcall(tmp_path, *arguments)
    assert done.returncode == 0
    assert json.loads(without_comments(done.stdout)) == {"Service": {"KebabCaseUrls": True}}
    assert "// Write generated paths" in done.stdout


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("StartupMessage", {"StartupMessage"}),
        ("service:urlpathprefix", {"Service": {"UrlPathPrefix"}}),
        ("Auth:CookieAuth", {"Auth": {"CookieAuth"}}),
        ("Auth:External:Company:ClientId", {"Auth": {"External": {"Company": {"ClientId"}}}}),
    ],
)
def test_config_with_the_name_of_a_key_prints_this_key_alone(tmp_path: Path, word: str, shown: object) -> None:
    def names(value: object) -> object:
        if not isinstance(value, dict) or not any(isinstance(inner, dict) for inner in value.values()):
            return set(value) if isinstance(value, dict) else value
        return {name: names(inner) for name, inner in value.items()}

    done = rowcall(tmp_path, "--config", word, "--Auth:External:Company:ClientId=x")
    assert names(json.loads(without_comments(done.stdout))) == shown


def test_config_reports_a_filter_without_matches(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--config", "no such thing")
    assert (done.returncode, done.stdout) == (0, '// No results for "no such thing"\n')


def test_an_override_after_config_is_not_a_filter(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--config", "--Urls=http://mine")
    assert '"Urls": "http://mine"' in done.stdout
    assert '"KebabCaseUrls"' in done.stdout


def test_config_masks_secrets_and_never_fails_for_an_unset_variable(tmp_path: Path) -> None:
    done = rowcall(
        tmp_path,
        "--ConnectionStrings:A=Host=h;Password=geheim",
        "--ConnectionStrings:B=Host={!NOT_SET};Password={!PW}",
        "--Auth:JwtSecret=geheim",
        "--config",
        PW="geheim",
    )
    assert done.returncode == 0
    assert "geheim" not in done.stdout + done.stderr
    assert '"A": "Host=h;Password={!CONNECTIONSTRINGS__A__PASSWORD}"' in done.stdout
    assert '"B": "Host={!NOT_SET};Password={!PW}"' in done.stdout
    assert (
        "  - CONNECTIONSTRINGS__A__PASSWORD for ConnectionStrings:A\n  - AUTH__JWTSECRET for Auth:JwtSecret"
        in done.stderr
    )


def test_each_secret_of_the_printed_configuration_has_its_own_variable(tmp_path: Path) -> None:
    done = rowcall(
        tmp_path,
        "--ConnectionStrings:my-db=Password=a",
        "--ConnectionStrings:my_db=Password=b",
        "--config",
    )
    variable = "CONNECTIONSTRINGS__MY_DB__PASSWORD"
    assert f'"my-db": "Password={{!{variable}}}"' in done.stdout
    assert f'"my_db": "Password={{!{variable}_2}}"' in done.stdout
    assert f"{variable} for ConnectionStrings:my-db\n  - {variable}_2 for ConnectionStrings:my_db" in done.stderr


@pytest.mark.slow
def test_a_printed_configuration_starts_with_its_secrets_in_the_environment(tmp_path: Path, database: Database) -> None:
    pairs = ";".join(f"{name}={value}" for name, value in conninfo_to_dict(database.conninfo).items())
    secret = "thirty-two characters, or a few more"
    values = (
        "--Config:AddEnvironmentVariables=true",
        f"--ConnectionStrings:Default={pairs};Password=geheim",
        "--Auth:JwtAuth=true",
        f"--Auth:JwtSecret={secret}",
    )
    (tmp_path / "printed.json").write_text(rowcall(tmp_path, *values, "--config").stdout)
    names = {"CONNECTIONSTRINGS__DEFAULT__PASSWORD": "geheim", "AUTH__JWTSECRET": secret}
    message = validated(tmp_path, "printed.json", "--strict", **names)
    assert (message["valid"], message["startWarnings"]) == (True, [])
    unset = str(validated(tmp_path, "printed.json")["connectionTest"])
    assert "the environment variable CONNECTIONSTRINGS__DEFAULT__PASSWORD is not set" in unset


@pytest.mark.slow
def test_config_reports_unknown_keys_on_stderr_and_ends_with_1(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--Service:KebabCaseUrl=1", "--config")
    assert done.returncode == 1
    assert "1 unknown configuration key\n  - Service:KebabCaseUrl at command line" in done.stderr
    assert "KebabCaseUrls" in done.stdout
    as_errors = rowcall(tmp_path, "--Service:KebabCaseUrl=1", "--config", "--Config:ValidateConfigKeys=Error")
    assert (as_errors.returncode, as_errors.stdout) == (1, "")
    ignored = rowcall(tmp_path, "--Service:KebabCaseUrl=1", "--config", "--Config:ValidateConfigKeys=ignore")
    assert (ignored.returncode, ignored.stderr) == (0, "")


@pytest.mark.slow
def test_config_has_colours_in_a_terminal_only(tmp_path: Path) -> None:
    assert "\x1b" not in rowcall(tmp_path, "--config", "kebab").stdout
    shown = in_terminal(tmp_path, "--config", "kebab")
    assert '\x1b[36m"\x1b[7mKebab\x1b[27mCaseUrls"\x1b[0m' in shown
    assert "\x1b[32mtrue\x1b[0m" in shown


def test_help_has_two_columns_in_colour_in_a_terminal_only(tmp_path: Path) -> None:
    assert "\x1b[33mrowcall -h, /?, --help" in in_terminal(tmp_path, "--help")
    assert "\x1b" not in rowcall(tmp_path, "--help").stdout


@pytest.mark.slow
def test_a_closed_output_pipe_is_not_an_error(tmp_path: Path) -> None:
    """`rowcall --config | true`, with a pipe that is closed before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [*COMMAND, "--config"],
            cwd=tmp_path,
            env=clean_environment(),
            stdout=pipe,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_the_schema_is_json_and_fits_the_file_that_init_writes(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--config-schema")
    assert (done.returncode, done.stderr) == (0, "")
    schema = json.loads(done.stdout)
    Draft7Validator.check_schema(schema)
    assert rowcall(tmp_path, "--init").returncode == 0
    written = json.loads(without_comments((tmp_path / "rowcall.json").read_text()))
    assert list(Draft7Validator(schema).iter_errors(written)) == []


def test_init_writes_a_commented_file_and_never_overwrites(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--init")
    assert (done.returncode, done.stderr) == (0, "")
    written = (tmp_path / "rowcall.json").read_text()
    assert '"ConnectionStrings"' in written
    assert written.count("//") > 10
    (tmp_path / "rowcall.json").write_text("{}")
    again = rowcall(tmp_path, "--init")
    assert (again.returncode, again.stderr) == (1, "rowcall: rowcall.json exists and is left as it is\n")
    assert (tmp_path / "rowcall.json").read_text() == "{}"
    assert rowcall(tmp_path, "--init", "other.json").returncode == 0
    assert (tmp_path / "other.json").read_text() == written
    assert rowcall(tmp_path, "--init", "no/such/folder.json").returncode == 1


def test_validate_accepts_a_valid_configuration_and_database(tmp_path: Path, database: Database) -> None:
    connection = f"--ConnectionStrings:Default={database.conninfo}"
    done = rowcall(tmp_path, "--validate", connection)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("Config validation: OK\nConnection test: OK\n")
    as_json = rowcall(tmp_path, "--json", "--validate", connection)
    assert as_json.returncode == 0
    assert json.loads(as_json.stdout) == {
        "valid": True,
        "configValid": True,
        "validationMode": "Warning",
        "warningsAreFatal": False,
        "warnings": [],
        "connectionTest": "ok",
        "errors": [],
        "startErrors": [],
        "startWarnings": [],
        "endpoints": 0,
        "leftOut": [],
    }


def test_validate_accepts_roles_of_servers_that_libpq_cannot_authenticate(tmp_path: Path, database: Database) -> None:
    pairs = ";".join(f"{name}={value}" for name, value in conninfo_to_dict(database.conninfo).items())
    expected = f"--ConnectionStrings:Default={pairs};Target Session Attributes=prefer-primary"
    assert validated(tmp_path, expected)["connectionTest"] == "ok"


def validated(folder: Path, *arguments: str, **environment: str) -> dict[str, object]:
    done = rowcall(folder, "--validate", "--json", *arguments, **environment)
    body: dict[str, object] = json.loads(done.stdout)
    assert done.returncode == (0 if body["valid"] else 1)
    assert done.stderr == ""
    return body


def test_validate_creates_and_removes_no_file(tmp_path: Path, database: Database) -> None:
    logs, keys = tmp_path / "logs", tmp_path / "keys"
    logs.mkdir()
    (logs / "log20250131.txt").write_text("an entry\n")
    arguments = (
        f"--ConnectionStrings:Default={database.conninfo}",
        *("--Log:ToFile=true", f"--Log:FilePath={logs}/log.txt", "--Log:RetainedFileCountLimit=1"),
        *("--DataProtection:Storage=FileSystem", f"--DataProtection:FileSystemPath={keys}"),
    )
    assert validated(tmp_path, *arguments)["valid"] is True
    assert [path.name for path in logs.iterdir()] == ["log20250131.txt"]
    assert not keys.exists()
    message = validated(tmp_path, *arguments, f"--Log:FilePath={logs}/log20250131.txt/log.txt")
    file = logs / "log20250131.txt"
    assert message["startErrors"] == [f"Log:FilePath: {file}/log.txt cannot be written: {file}: Not a directory"]


def test_validate_lists_unknown_keys_which_only_errors_make_invalid(tmp_path: Path, database: Database) -> None:
    arguments = (f"--ConnectionStrings:Default={database.conninfo}", "--Nope:A=1")
    message = validated(tmp_path, *arguments)
    assert (message["valid"], message["warnings"]) == (True, ["Nope"])
    message = validated(tmp_path, *arguments, "--Config:ValidateConfigKeys=Error")
    assert (message["valid"], message["configValid"], message["warningsAreFatal"]) == (False, False, True)
    message = validated(tmp_path, *arguments, "--Config:ValidateConfigKeys=Ignore")
    assert (message["valid"], message["warnings"]) == (True, [])


def test_an_invalid_validation_mode_is_a_warning_and_reported_unchanged(tmp_path: Path) -> None:
    message = validated(tmp_path, "--ConnectionStrings:Other=x", "--Nope=1", "--Config:ValidateConfigKeys=Loudly")
    assert (message["configValid"], message["validationMode"], message["warnings"]) == (True, "Loudly", ["Nope"])
    assert any("'Loudly' is not allowed" in str(result) for result in message["startWarnings"])  # type: ignore[attr-defined]


def test_validate_names_the_reason_why_the_database_is_unreachable(tmp_path: Path) -> None:
    message = validated(tmp_path)
    assert "environment variable PGDATABASE is not set" in str(message["connectionTest"])
    message = validated(
        tmp_path, "--ConnectionStrings:Default=Host=127.0.0.1;Port=1;Database=x;Username=u;Password=geheim"
    )
    assert message["valid"] is False
    assert message["configValid"] is True
    assert "geheim" not in str(message["connectionTest"])
    text = rowcall(tmp_path, "--validate", "--ConnectionStrings:Default=Host=127.0.0.1;Port=1;Database=x")
    assert text.returncode == 1
    assert "Connection test: FAILED - " in text.stdout


@pytest.mark.parametrize(
    ("arguments", "list_", "message_part"),
    [
        (
            ["--config:envfile=./other.env"],
            "startWarnings",
            "Config:EnvFile has no effect on the command line: it is read from configuration files only",
        ),
        (
            ["--Log:OutputTemplate={Timestamp} {message:lj}{NewLine}"],
            "startWarnings",
            "Log:OutputTemplate has no {Message}",
        ),
        (
            ["--Service:IncludeSchemas:0=nosuch"],
            "startWarnings",
            "Service:IncludeSchemas names nosuch, where no endpoint is found",
        ),
        (
            ["--Stats:Enabled=true", "--Stats:SchemaSimilarTo=(a"],
            "startErrors",
            "Stats:SchemaSimilarTo '(a' is not a pattern: invalid regular expression",
        ),
        (
            ["--Service:SchemaSimilarTo=(a"],
            "startErrors",
            "invalid regular expression: parentheses () not balanced (in a key of Service or Service:CrudSource whose",
        ),
        (
            [
                "--ResponseCompression:Enabled=1",
                "--ResponseCompression:UseBrotli=0",
                "--ResponseCompression:UseGzipFallback=0",
            ],
            "startWarnings",
            "ResponseCompression:Enabled is true, but UseBrotli and UseGzipFallback are false: nothing is compressed",
        ),
        (
            ["--Log:ToOpenTelemetry=1", "--Log:OTLPEndpoint=collector"],
            "startErrors",
            "Log:OTLPEndpoint: 'collector' is no address such as http://localhost:4317",
        ),
        (
            ["--StartupMessage={!NOWHERE}"],
            "startErrors",
            "command line: StartupMessage: the environment variable NOWHERE is not set (required by {!NOWHERE})",
        ),
    ],
)
def test_mistakes_that_only_a_start_would_find_are_reported(
    tmp_path: Path, database: Database, arguments: list[str], list_: str, message_part: str
) -> None:
    message = validated(tmp_path, f"--ConnectionStrings:Default={database.conninfo}", *arguments)
    assert message_part in str(message[list_])


def test_without_a_default_connection_validate_uses_that_of_the_start(tmp_path: Path) -> None:
    message = validated(tmp_path, "--ConnectionStrings:Other=Host=127.0.0.1;Port=1;Database=x")
    assert (message["valid"], message["connectionTest"]) == (False, "ok")
    assert "cannot read the database" in str(message["startErrors"])


def test_a_missing_configuration_file_is_reported(tmp_path: Path) -> None:
    done = rowcall(tmp_path)
    assert done.returncode == 1
    assert "PGDATABASE is not set" in done.stderr
    assert f"there is no configuration here: {tmp_path} has neither rowcall.json nor rowcall.local.json" in done.stderr


def test_an_unavailable_database_is_reported_in_one_message(tmp_path: Path) -> None:
    settings = ("--ConnectionStrings:Default=Host=127.0.0.1;Port=1;Database=x", "--Urls=http://127.0.0.1:0")
    done = rowcall(tmp_path, *settings, "--ConnectionSettings:RetryOptions:Enabled=false")
    assert done.returncode == 1
    assert (done.stdout + done.stderr).count("Connection refused") == 1
    assert (
        'rowcall: cannot read the database: connection failed: connection to server at "127.0.0.1", port 1'
        in done.stderr
    )


def test_dropped_map_entries_and_meaningless_words_are_reported(tmp_path: Path) -> None:
    claims = "Service:AuthenticationOptions:ContextKeyClaimsMapping"
    (tmp_path / "own.json").write_text(
        json.dumps(
            {
                "ConnectionStrings": {"Default": "Host=127.0.0.1;Port=1;Database=x"},
                "Service": {"AuthenticationOptions": {"ContextKeyClaimsMapping": {"app.tenant": "tenant"}}},
                "Log": {"MinimalLevels": {"rowcall": "Loud", "rowcall.http": "Off"}},
            }
        )
    )
    values = list(map(str, validated(tmp_path, "own.json")["startWarnings"]))  # type: ignore[call-overload]
    assert any(
        item.startswith(f"{claims} at own.json:")
        and "drops request.user_id, request.user_name, request.user_roles: give them here too, or null" in item
        for item in values
    )
    assert any(
        item.startswith("Log:MinimalLevels:rowcall at own.json:") and "'Loud' is none of" in item for item in values
    )
    assert not any("rowcall.http" in item for item in values)


def test_validate_lists_every_wrong_value_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "rowcall.json").write_text('{"Service": {"LogCommands": "x", "CommandTimeout": "y"}}')
    message = validated(tmp_path, "--ConnectionStrings:Other=x")
    assert message["configValid"] is False
    assert [str(error).split(": '")[0] for error in message["errors"]] == [  # type: ignore[attr-defined]
        "rowcall.json:1:52: Service:CommandTimeout",
        "rowcall.json:1:29: Service:LogCommands",
    ]


def test_validate_prints_json_for_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "rowcall.json").write_text('{"Urls": }')
    message = validated(tmp_path)
    assert message["valid"] is False
    assert str(message["errors"]).startswith("[\"rowcall.json:1:10: Urls: '}' is no JSON value")


def test_a_start_lists_every_wrong_value_at_once(tmp_path: Path) -> None:
    (tmp_path / "rowcall.json").write_text('{"Service": {"LogCommands": "x", "CommandTimeout": "y"}}')
    done = rowcall(tmp_path)
    assert done.returncode == 1
    assert "rowcall.json:1:29: Service:LogCommands: 'x' is not a boolean" in done.stderr
    assert "rowcall.json:1:52: Service:CommandTimeout: 'y' is not a duration" in done.stderr
