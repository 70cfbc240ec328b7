"""The real command: what it says and how it ends, before it serves anything (command-1 to command-9)."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rowcall.core.auth.password_hash import verify_password
from rowcall.core.config import ConfigError
from rowcall.service.command.configuration import show_equivalent
from rowcall.service.command.configuration_files import configuration_files, load
from rowcall.service.command.switches import SWITCHES, File, parse_arguments
from tests.harness.command import COMMAND, clean_environment, rowcall


def test_arguments_are_sorted_into_files_overrides_and_switches() -> None:
    arguments = parse_arguments(["a.json", "--Urls=http://x=y", "-o", "b.json", "c.json", "--DEMO"])
    assert arguments.files == (File("a.json"), File("b.json", optional=True), File("c.json"))
    assert arguments.overrides == (("Urls", "http://x=y"),)
    assert arguments.given == {"--demo": ()}
    assert arguments.unknown is None


def test_the_switch_for_the_console_is_its_key(tmp_path: Path) -> None:
    (tmp_path / "shop.conf").write_text('db-uri = "postgresql://127.0.0.1/shop"\n')
    for given in (["--console"], ["--console", "--postgrest", str(tmp_path / "shop.conf")]):
        assert load(parse_arguments(given)).settings.flag("Console:Enabled"), given
        assert not load(parse_arguments(given[1:])).settings.flag("Console:Enabled")


def test_braces_in_values_of_postgrest_are_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shop.conf"
    file.write_text(
        'db-uri = "postgresql://shop:{HOME}@db/shop"\ndb-schemas = "{HOME}"\n'
        'jwt-secret = "{!ABSENT} is long enough for a secret {HOME}"\napp.settings.path = "{HOME}{!HOME:x}"\n'
    )
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.setenv("PGRST_SERVER_TRACE_HEADER", "{HOME}")
    settings = load(parse_arguments(["--postgrest", str(file), "--PostgRest:RootFunction={HOME}"])).settings
    assert settings.map_text("ConnectionStrings", "Default") == "postgresql://shop:{HOME}@db/shop"
    names = ("Schemas", "JwtSecret", "ServerTraceHeader", "RootFunction")
    texts = [settings.value_of(f"PostgRest:{name}") for name in names]
    assert texts == ["{HOME}", "{!ABSENT} is long enough for a secret {HOME}", "{HOME}", "/root"]
    assert settings.value_of("PostgRest:AppSettings") == {"path": "{HOME}{!HOME:x}"}
    # The printed equivalent has the same values where it is loaded.
    assert show_equivalent(parse_arguments(["--from-postgrest", str(file)])) == 0
    printed = tmp_path / "rowcall.json"
    printed.write_text(capsys.readouterr().out)
    settings = load(parse_arguments([str(printed)])).settings
    assert [settings.value_of(f"PostgRest:{name}") for name in ("Schemas", "ServerTraceHeader")] == ["{HOME}", "{HOME}"]


def test_the_environment_alone_can_configure_postgrests_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGRST_DB_SCHEMAS", "shop")
    arguments = parse_arguments(["--postgrest", "--HttpServer:Workers=3"])
    settings = load(arguments).settings
    assert (settings.value_of("PostgRest:Schemas"), settings.value_of("HttpServer:Workers")) == ("shop", 3)
    assert configuration_files(arguments) == ()
    monkeypatch.setenv("PGRST_LOG_LEVEL", "loud")
    with pytest.raises(ConfigError, match="environment: log-level: 'loud' is not one of"):
        load(arguments)


@pytest.mark.parametrize("switch", ["--help", "-h", "/?", "--HELP"])
def test_help_shows_usage_in_two_columns_that_pipe_cleanly(tmp_path: Path, switch: str) -> None:
    done = rowcall(tmp_path, switch)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage:\n" in done.stdout
    assert "\x1b" not in done.stdout
    assert any(line.startswith("rowcall --Section:Key=value\t") for line in done.stdout.splitlines())


def test_version_prints_the_versions_of_components(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    rows = dict(line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
    assert {"rowcall", "CPython", "libpq", "granian", "psycopg"} <= rows.keys()
    assert rows["CurrentDirectory"] == str(tmp_path)


def test_annotations_are_listed_as_json(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--annotations")
    assert (done.returncode, done.stderr) == (0, "")
    listed = json.loads(done.stdout)
    assert all(list(entry) == ["name", "aliases", "syntax", "description"] for entry in listed)
    assert {"http", "authorize", "cached", "header", "custom_parameter"} <= {entry["name"] for entry in listed}
    assert len({entry["name"] for entry in listed}) == len(listed) >= 44


def test_versions_are_printed_as_json_if_requested(tmp_path: Path) -> None:
    for arguments in (("--version", "--json"), ("--json", "-v")):
        done = rowcall(tmp_path, *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        body = json.loads(done.stdout)
        assert list(body) == ["runtime", "platform", "versions", "currentDirectory", "baseDirectory"]
        assert body["runtime"]["name"] == "CPython"
        assert {"rowcall", "granian", "psycopg", "libpq"} <= body["versions"].keys()
        assert body["currentDirectory"] == str(tmp_path)


@pytest.mark.parametrize(
    ("switch", "unwanted"),
    [
        ("--help", {"psycopg", "granian", "rowcall.core.config.table"}),
        ("--version", {"granian", "rowcall.core.config.table"}),
    ],
)
def test_a_switch_that_only_prints_loads_few_modules(tmp_path: Path, switch: str, unwanted: set[str]) -> None:
    program = (
        f"import sys; from rowcall.service.cli import main; main(['{switch}']);"
        f"sys.exit(', '.join({unwanted} & sys.modules.keys()) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("argument", ["--version", "--ConnectionStrings:Default=postgresql://unknown@127.0.0.1:1/none"])
def test_an_unsupported_psycopg_is_reported_in_one_line(tmp_path: Path, argument: str) -> None:
    done = rowcall(tmp_path, argument, PSYCOPG_IMPL="python")
    assert done.returncode == 1
    assert done.stderr.startswith("rowcall: psycopg's C implementation (psycopg[c] or psycopg[binary]) is needed")


@pytest.mark.slow
def test_hash_prints_the_stored_form_of_a_password(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--hash", "open sesame")
    assert (done.returncode, done.stderr) == (0, "")
    stored = done.stdout.splitlines()[-1]
    assert len(stored) == 64
    assert verify_password("open sesame", stored)
    assert not verify_password("open", stored)


def test_hash_takes_a_password_that_looks_like_a_switch(tmp_path: Path) -> None:
    assert verify_password("--help", rowcall(tmp_path, "--hash", "--help").stdout.splitlines()[-1])


def test_basic_auth_prints_the_header(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--basic_auth", "Zoë", "open:sesame")
    assert (done.returncode, done.stderr) == (0, "")
    header, _, encoded = done.stdout.splitlines()[-1].partition(": Basic ")
    assert header == "Authorization"
    assert base64.b64decode(encoded).decode() == "Zoë:open:sesame"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--hash"], "Unknown parameter --hash\n\nIt needs PASSWORD."),
        (["--basic_auth", "me"], "Unknown parameter --basic_auth\n\nIt needs USER and PASSWORD."),
        (["--Service:UrlPathPrefix"], "A configuration key is given as --Section:Key=value."),
        (["-x"], "Unknown parameter -x\n\nTry: rowcall --help"),
        (["--Urls"], "A configuration key is given as --Section:Key=value."),
        (["--validate=yes"], "Unknown parameter --validate=yes\n\n--validate takes no value."),
        (["--=x"], "Unknown parameter --=x\n\nTry: rowcall --help"),
        (["-o"], "It needs FILE."),
        (["--hash", "open", "sesame"], "Unknown parameter sesame\n\n--hash takes PASSWORD; a text with blanks needs"),
        (["--basic_auth", "me", "open", "sesame"], "Unknown parameter sesame\n\n--basic_auth takes USER and PASSWORD;"),
        (["a.json", "--postgrest", "b.conf"], "Unknown parameter a.json\n\n--postgrest takes one file, and reads no"),
        (["--postgrest", "b.conf", "-o", "a.json"], "Unknown parameter a.json\n\n--postgrest takes one file, and"),
        (["a.json", "--from-postgrest", "b.conf"], "Unknown parameter a.json\n\n--from-postgrest takes one file,"),
        (["--init", "a.json", "b.json"], "Unknown parameter b.json\n\n--init takes FILE;"),
        (["--check"], "Unknown parameter --check\n\nIt requires --contract or --migrate."),
        (["--strict", "--endpoints"], "Unknown parameter --strict\n\nIt requires --validate or --audit."),
    ],
)
def test_a_switch_that_lacks_a_value_is_refused_with_the_reason(
    tmp_path: Path, arguments: list[str], hint: str
) -> None:
    done = rowcall(tmp_path, *arguments)
    assert done.returncode == 2
    assert hint in done.stderr


def test_help_names_every_switch(tmp_path: Path) -> None:
    result = rowcall(tmp_path, "--help").stdout
    assert [switch.name for switch in SWITCHES if f"{switch.usage}\t{switch.meaning}" not in result] == []


def test_an_unknown_switch_gets_a_hint(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--hepl")
    assert done.returncode == 2
    assert done.stderr == "Unknown parameter --hepl\n\nDid you mean --help? Try: rowcall --help\n"


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        ({}, ["nope.json"], "rowcall: the configuration file nope.json does not exist (looked for "),
        ({"rowcall.json": '{"Urls": }'}, [], "rowcall: rowcall.json:1:10: Urls: '}' is no JSON value"),
        ({}, [], "rowcall: command"),
        ({}, ["--ConnectionStrings:Default=Host=x;Pasword=y"], "rowcall: ConnectionStrings:Default: unknown keyword"),
        ({}, ["--ConnectionStrings:Default="], "rowcall: ConnectionStrings:Default is empty"),
        ({}, ["--Log:ToConsole=maybe"], "rowcall: command line: Log:ToConsole: 'maybe' is not a boolean"),
    ],
)
def test_a_failed_start_reports_the_reason_and_ends_with_1(
    tmp_path: Path, files: dict[str, str], arguments: list[str], message: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = rowcall(tmp_path, *arguments)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    if message != "rowcall: command":
        assert done.stderr.startswith(message)
    else:
        assert "ConnectionStrings:Default: the environment variable PGDATABASE is not set" in done.stderr


def test_unknown_keys_end_the_start_when_they_are_errors(tmp_path: Path) -> None:
    (tmp_path / "rowcall.json").write_text('{"Service": {"KebabCaseUrl": true}}')
    done = rowcall(tmp_path, "--Config:ValidateConfigKeys=Error")
    assert done.returncode == 1
    assert "ERR] Unknown configuration key: Service:KebabCaseUrl at rowcall.json:1:14 " in done.stdout
    assert "(did you mean Service:KebabCaseUrls?)" in done.stdout
    assert done.stderr.startswith(
        "rowcall: unknown configuration keys, which Config:ValidateConfigKeys does not permit:\n"
    )
    assert "Service:KebabCaseUrl at rowcall.json:1:14 " in done.stderr


def test_unknown_keys_are_warnings_by_default_and_can_be_ignored(tmp_path: Path) -> None:
    broken = "--ConnectionStrings:Default="
    assert "WRN] Unknown configuration key: Nope at command line" in rowcall(tmp_path, "--Nope=1", broken).stdout
    ignored = rowcall(tmp_path, "--Nope=1", broken, "--Config:ValidateConfigKeys=Ignore")
    assert "Nope" not in ignored.stdout


def test_default_files_are_read_in_order_and_not_beside_named_ones(tmp_path: Path) -> None:
    (tmp_path / "rowcall.json").write_text('{"First": 1}')
    (tmp_path / "rowcall.local.json").write_text('{"Second": 1}')
    (tmp_path / "named.json").write_text('{"Third": 1}')
    broken = "--ConnectionStrings:Default="
    both = rowcall(tmp_path, broken).stdout
    assert "First" in both
    assert "Second" in both
    named = rowcall(tmp_path, "named.json", "-o", "missing.json", broken).stdout
    assert "Third" in named
    assert "First" not in named


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_names_the_encoding_of_a_file(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "rowcall.json").write_bytes('{"ApplicationName": "Zoë"}'.encode(encoding))
    assert '"ApplicationName": "Zoë"' in rowcall(tmp_path, "--config", "Zoë").stdout


@pytest.mark.slow
def test_invalid_text_files_are_reported_and_end_with_1(tmp_path: Path) -> None:
    (tmp_path / "binary.json").write_bytes(b"{\xff\xfe\x00}")
    (tmp_path / "env.json").write_text('{"Config": {"EnvFile": "binary.json"}}')
    for name, message in (
        ("binary.json", "the configuration file binary.json is not UTF-8 text (byte 2)"),
        (".", "the configuration file . can't be read: Is a directory"),
        ("", "the name of a configuration file is empty"),
        ("env.json", "Config:EnvFile: the environment file binary.json is not UTF-8 text"),
    ):
        done = rowcall(tmp_path, name, "--validate")
        assert (done.returncode, message in done.stdout + done.stderr) == (1, True)
        assert rowcall(tmp_path, name).stderr == f"rowcall: {message}\n"


@pytest.mark.slow
def test_a_configuration_can_be_read_from_a_pipe(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "/dev/stdin"],
        cwd=tmp_path,
        env=clean_environment(),
        input='{"ConnectionStrings": {"Default": ""}}',
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "rowcall: ConnectionStrings:Default is empty: say where the database is\n",
    )


def test_an_argument_that_is_not_text_is_reported(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--hash", os.fsdecode(b"a\xffb"))
    assert (done.returncode, done.stderr) == (1, "rowcall: an argument is not UTF-8 text\n")


def test_a_variable_with_invalid_utf8_is_read_with_replacement_characters(tmp_path: Path) -> None:
    shown = rowcall(tmp_path, "--ApplicationName={BROKEN}", "--config", "a\ufffdb", BROKEN=os.fsdecode(b"a\xffb"))
    assert '"ApplicationName": "a\ufffdb"' in shown.stdout


def test_an_env_file_fills_gaps_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "rowcall.json").write_text(
        '{"Config": {"EnvFile": "my.env"}, "ConnectionStrings": {"A": "{KIND}=x;B=1"}}'
    )
    (tmp_path / "my.env").write_text("KIND=FromFile\nOTHER=1\n")
    done = rowcall(tmp_path)
    assert "Loaded 2 environment variables from my.env" in done.stdout
    assert "unknown keyword 'FromFile'" in done.stderr
    stored = rowcall(tmp_path, KIND="FromEnvironment")
    assert "Loaded 1 environment variables from my.env, 1 already set in the environment" in stored.stdout
    assert "unknown keyword 'FromEnvironment'" in stored.stderr
