"""Environment placeholders in values, and the `.env` file (configuration-6 to configuration-9)."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.config import ConfigError, Settings, assemble
from rowcall.core.config.env_file import parse_env_file
from rowcall.core.config.loading import SourceText, load_files
from rowcall.core.config.output.effective import effective
from rowcall.core.config.output.printing import format_entries
from rowcall.core.config.placeholders import MissingVariable, escape_placeholders, resolve, resolve_what_is_set

SET = {"HOST": "db", "EMPTY": "", "BRACES": "{HOST}"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{HOST}", "db"),
        ("a{HOST}b{HOST}", "adbbdb"),
        ("{!HOST}", "db"),
        ("{!HOST:other}", "db"),
        ("{MISSING}", "{MISSING}"),
        ("{!MISSING:a:b c}", "a:b c"),
        ("{!MISSING:}", ""),
        ("{EMPTY}", ""),
        ("{!EMPTY:x}", ""),
        ("{host}", "{host}"),
        ("{BRACES}", "{HOST}"),
        ("{HOST:mm}", "{HOST:mm}"),
        ("{Timestamp:HH:mm} td{border:1px} {status: number}", "{Timestamp:HH:mm} td{border:1px} {status: number}"),
        ("{HOST", "{HOST"),
        ("{}", "{}"),
    ],
)
def test_a_placeholder_is_replaced_by_its_variable_if_set(text: str, expected: str) -> None:
    assert resolve(text, SET) == expected


def test_a_required_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(MissingVariable, match="the environment variable NOPE is not set"):
        resolve("x{!NOPE}", SET)


def test_masking_never_fails() -> None:
    shown = resolve_what_is_set("{!NOPE} {!NOPE:other} {NOPE} {!HOST}", SET)
    assert shown == "{!NOPE} other {NOPE} db"


@given(st.text(st.sampled_from("{}!:AB x"), max_size=20))
def test_text_without_set_and_required_variables_is_unchanged(text: str) -> None:
    assert "{!" in text or resolve(text, {}) == text


@given(st.text(st.sampled_from("{}!:AB= x"), max_size=20))
def test_escaped_text_is_resolved_to_itself(text: str) -> None:
    variables = {"A": "a", "B": "{A}"}
    assert resolve(escape_placeholders(text), variables) == text
    assert resolve_what_is_set(escape_placeholders(text), variables) == text


@given(st.dictionaries(st.sampled_from("AB"), st.text(max_size=5)), st.lists(st.sampled_from("AB"), max_size=5))
def test_each_placeholder_is_replaced_once(variables: dict[str, str], names: list[str]) -> None:
    text = "".join(f"<{{{name}}}>" for name in names)
    assert resolve(text, variables) == "".join(f"<{variables.get(name, f'{{{name}}}')}>" for name in names)


def settings(text: str, environment: dict[str, str]) -> Settings:
    return assemble(load_files([SourceText("f.json", text)]), [], environment).settings


def test_a_required_variable_stops_only_the_read_that_needs_it() -> None:
    loaded = settings('{"Urls": "http://{!NOPE}", "ApplicationName": "shop"}', {})
    assert loaded.text("ApplicationName") == "shop"
    with pytest.raises(ConfigError, match=r"f\.json:1:10: Urls: the environment variable NOPE is not set"):
        loaded.text("Urls")


def test_an_unset_placeholder_leaves_a_number_and_a_switch_at_their_default() -> None:
    loaded = settings('{"HttpServer": {"Workers": "{NOPE}"}, "Service": {"KebabCaseUrls": "{NOPE}"}}', {})
    assert loaded.integer_or_none("HttpServer:Workers") is None
    assert loaded.flag("Service:KebabCaseUrls") is True


def test_placeholders_reach_lists_and_maps() -> None:
    text = '{"Service": {"IncludeSchemas": ["{S}"]}, "ConnectionStrings": {"Main": "host={S}"}}'
    loaded = settings(text, {"S": "x"})
    assert loaded.texts("Service:IncludeSchemas") == ("x",)
    assert loaded.text_map("ConnectionStrings") == {"Main": "host=x"}


def test_the_default_connection_string_uses_the_variables_of_libpq() -> None:
    loaded = settings("{}", {"PGDATABASE": "shop", "PGHOST": "db"})
    assert loaded.map_text("ConnectionStrings", "default") == (
        "Host=db;Port=5432;Database=shop;Username=postgres;Password=postgres"
    )


def test_the_switch_turns_replacement_off() -> None:
    off = '"Config": {"ParseEnvironmentVariables": false}'
    text = f'{{{off}, "Urls": "{{U}}{{!U}}{{!V}}{{!V:v}}", "Service": {{"LogCommands": "{{U}}"}}}}'
    loaded = pickle.loads(pickle.dumps(settings(text, {"U": "true"})))
    assert loaded.text("Urls") == "{U}{!U}{!V}{!V:v}"
    assert loaded.flag("Service:LogCommands") is False
    assert '"Urls": "{U}{!U}{!V}{!V:v}"' in format_entries(effective(loaded))


def test_the_default_connection_string_uses_its_variables_even_if_replacement_is_off() -> None:
    loaded = settings('{"Config": {"ParseEnvironmentVariables": false}}', {"PGDATABASE": "shop"})
    assert "Host=localhost;Port=5432;Database=shop;" in (loaded.map_text("ConnectionStrings", "Default") or "")


def test_random_tokens_have_the_requested_length_and_do_not_change() -> None:
    loaded = settings('{"ApplicationName": "{rnd8}-{rnd3_2}"}', {})
    name = loaded.text("ApplicationName")
    assert [len(part) for part in name.split("-")] == [8, 3]
    assert loaded.text("ApplicationName") == name


def test_an_env_file_is_read_line_by_line() -> None:
    text = "# c\n\n A = 1 \nB='x y'\nC=\"q\"\nD=a=b\n=no\nnothing\nE=\nA=2\nF='open\n"
    assert parse_env_file(text) == {"A": "2", "B": "x y", "C": "q", "D": "a=b", "E": "", "F": "'open"}


def test_only_cr_and_lf_end_a_line_of_an_env_file() -> None:
    values = {"A": "x\u2028B=y", "C": "x\x85D=y", "E": "x\x0bF=y"}
    assert parse_env_file("\r\n".join(f"{name}={value}" for name, value in values.items())) == values
    assert parse_env_file("A=1\rB=2\r\nC=3") == {"A": "1", "B": "2", "C": "3"}


@given(st.text(max_size=60))
def test_any_text_is_parsed_as_an_env_file(text: str) -> None:
    assert all(name == name.strip() and name for name in parse_env_file(text))
