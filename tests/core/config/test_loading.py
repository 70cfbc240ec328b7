"""From configuration texts to settings: order, merging, comments, positions of mistakes (configuration-1 to
configuration-18)."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.config import ConfigError, Settings, SourceText, assemble, load_files
from rowcall.core.config.loading import former_keys
from rowcall.core.config.relaxed_json import parse
from rowcall.core.config.tree import Scalar, Section, leaves, merge


def load(*texts: str, overrides: dict[str, str] | None = None, environment: dict[str, str] | None = None) -> Settings:
    files = load_files(SourceText(f"file{number}.json", text) for number, text in enumerate(texts, 1))
    return assemble(files, (overrides or {}).items(), environment or {}).settings


def test_an_index_with_thousands_of_digits_comes_last() -> None:
    settings = load(overrides={f"Cors:AllowedOrigins:{number}": number[:9] for number in ("9" * 5000, "10", "09")})
    assert settings.texts("Cors:AllowedOrigins") == ("09", "10", "9" * 9)


def test_without_any_source_every_key_has_its_default() -> None:
    settings = load()
    assert settings.text("Urls") == "http://localhost:8080"
    assert settings.flag("Service:RequiresAuthorization") is True
    assert settings.integer_or_none("HttpServer:Workers") is None
    assert settings.seconds("ConnectionSettings:Pool:SlowThreshold") == pytest.approx(0.003)
    assert settings.numbers("ConnectionSettings:RetryOptions:RetrySequenceSeconds") == (1, 3, 6, 12)


def test_comments_trailing_commas_and_a_byte_order_mark_are_accepted() -> None:
    text = '\ufeff{ // a\n "Urls": /* b */ "http://x", "Service": {"IncludeSchemas": ["a", "b",],},\n}'
    assert load(text).text("Urls") == "http://x"
    assert load(text).texts("Service:IncludeSchemas") == ("a", "b")


def test_a_later_file_has_precedence_for_each_key() -> None:
    settings = load(
        '{"Service": {"UrlPathPrefix": "/v1", "CommandTimeout": "5s"}}',
        '{"service": {"URLPATHPREFIX": "/v2"}}',
    )
    assert settings.text("Service:UrlPathPrefix") == "/v2"
    assert settings.seconds("Service:CommandTimeout") == 5


def test_a_key_of_a_file_may_be_a_path() -> None:
    settings = load(
        '{"service:urlprefix": 1, "Service": {"CommandTimeout": "5s", "IncludeSchemas:0": "a"},'
        ' "Service:UrlPathPrefix": "/v1", "NpgsqlRest:RoutineOptions:NestedJsonForCompositeTypes": true}'
    )
    assert settings.seconds("Service:CommandTimeout") == 5
    assert settings.text("Service:UrlPathPrefix") == "/v1"
    assert settings.texts("Service:IncludeSchemas") == ("a",)
    assert settings.flag("Service:RoutineOptions:NestedJsonForCompositeTypes") is True


def test_lists_merge_by_index() -> None:
    settings = load('{"Service": {"IncludeSchemas": ["a", "b", "c"]}}', '{"Service": {"IncludeSchemas": ["x"]}}')
    assert settings.texts("Service:IncludeSchemas") == ("x", "b", "c")


def test_the_command_line_sets_list_elements_with_precedence() -> None:
    settings = load('{"Service": {"IncludeSchemas": ["a"]}}', overrides={"service:includeschemas:1": "b", "urls": "u"})
    assert settings.texts("Service:IncludeSchemas") == ("a", "b")
    assert settings.text("Urls") == "u"


POLICIES = "ErrorHandlingOptions:ErrorCodePolicies"


def test_single_elements_form_a_list() -> None:
    settings = load(
        '{"Config": {"AddEnvironmentVariables": true}, "Service": {"BeforeRoutineCommands": ["select 1"]}}',
        overrides={f"{POLICIES}:0:Name": "a", f"{POLICIES}:0:ErrorCodes:22012:StatusCode": "422"},
        environment={"Service__BeforeRoutineCommands__1__Sql": "select 2", "Service__AvailableEnvVars__0": "A"},
    )
    assert settings.value(POLICIES) == ({"ErrorCodes": {"22012": {"StatusCode": "422"}}, "Name": "a"},)
    assert settings.value("Service:BeforeRoutineCommands") == ("select 1", {"Sql": "select 2"})
    assert settings.name_defaults("Service:AvailableEnvVars") == {"A": None}


def test_one_element_of_the_command_line_changes_the_list_of_a_file() -> None:
    settings = load(
        '{"Service": {"BeforeRoutineCommands": ["a", "b"]}}', overrides={"Service:BeforeRoutineCommands:1": "c"}
    )
    assert settings.value("Service:BeforeRoutineCommands") == ("a", "c")


def test_a_configured_list_replaces_the_default_list() -> None:
    settings = load('{"ConnectionSettings": {"RetryOptions": {"RetrySequenceSeconds": [0.5]}}}')
    assert settings.numbers("ConnectionSettings:RetryOptions:RetrySequenceSeconds") == (0.5,)


@pytest.mark.parametrize("empty", ["[]", '[""]', "null"])
def test_an_empty_list_counts_as_not_configured(empty: str) -> None:
    assert load(f'{{"Service": {{"IncludeSchemas": {empty}}}}}').texts("Service:IncludeSchemas") is None


def test_a_null_overrides_an_earlier_value() -> None:
    settings = load('{"Service": {"UrlPathPrefix": "/v1"}}', '{"Service": {"UrlPathPrefix": null}}')
    assert settings.text_or_none("Service:UrlPathPrefix") is None


def test_the_second_name_of_the_server_section_is_merged_with_the_first() -> None:
    settings = load('{"Kestrel": {"Limits": {"MaxRequestBodySize": 5}}, "HttpServer": {"Workers": 2}}')
    assert settings.integer("HttpServer:Limits:MaxRequestBodySize") == 5
    assert settings.integer("HttpServer:Workers") == 2


@pytest.mark.parametrize("name", ["NpgsqlRest", "npgsqlrest", "Service"])
def test_the_section_of_the_established_system_is_the_section_service(name: str) -> None:
    switched_on = '{"Config": {"AddEnvironmentVariables": true}}'
    assert load(f'{{"{name}": {{"UrlPathPrefix": "/v1"}}}}').text("Service:UrlPathPrefix") == "/v1"
    assert load(overrides={f"{name}:UrlPathPrefix": "/v2"}).text("Service:UrlPathPrefix") == "/v2"
    environment = {f"{name}__UrlPathPrefix": "/v3"}
    assert load(switched_on, environment=environment).text("Service:UrlPathPrefix") == "/v3"


def test_environment_keys_have_precedence_over_files_but_not_over_the_command_line() -> None:
    text = '{"Config": {"AddEnvironmentVariables": true}, "Urls": "file", "EnvironmentName": "file"}'
    environment = {"URLS": "env", "environmentname": "env", "Service__UrlPathPrefix": "/env", "SERVICE": "ignored"}
    settings = load(text, environment=environment, overrides={"EnvironmentName": "line"})
    assert settings.text("Urls") == "env"
    assert settings.text("EnvironmentName") == "line"
    assert settings.text("Service:UrlPathPrefix") == "/env"


def test_a_variable_below_a_text_is_no_key() -> None:
    """`--config` uses such names for the variables of secrets within texts."""
    text = '{"Config": {"AddEnvironmentVariables": true}, "ConnectionStrings": {"Default": "Host=h;Password={!%s}"}}'
    name = "CONNECTIONSTRINGS__DEFAULT__PASSWORD"
    settings = load(text % name, environment={name: "p", "CORS__ALLOWEDORIGINS__0__PASSWORD": "p"})
    assert settings.text_map("ConnectionStrings") == {"Default": "Host=h;Password=p"}
    assert not settings.texts("Cors:AllowedOrigins")


@pytest.mark.parametrize(
    ("section", "name", "key"),
    [
        ("RateLimiterOptions:Policies", "slow", ":PermitLimit"),
        ("CacheOptions:Profiles", "fast", ":Expiration"),
        ("CommandRetryOptions:Strategies", "often", ":RetrySequenceSeconds:0"),
        ("ValidationOptions:Rules", "iban", ":Pattern"),
        ("Auth:Schemes", "short", ":CookieValid"),
        ("ConnectionStrings", "reports", ""),
    ],
)
def test_an_override_in_another_case_changes_the_value_and_not_the_name(section: str, name: str, key: str) -> None:
    path = f"{section}:{name}{key}"
    text = f'{{"Config": {{"AddEnvironmentVariables": true}}, "{path}": "1"}}'
    by_variable = load(text, environment={path.upper().replace(":", "__"): "2"})
    by_line = load(text, overrides={path.upper(): "2"})
    by_file = load(text, f'{{"{path.upper()}": "2"}}')
    for settings in (by_variable, by_line, by_file):
        values = {place: scalar.text for place, scalar in leaves(settings.root)}
        assert values == {"Config:AddEnvironmentVariables": "true", path: "2"}


def test_environment_keys_are_disabled_by_default() -> None:
    settings = load(environment={"URLS": "env"}, overrides={"Config:AddEnvironmentVariables": "true"})
    assert settings.text("Urls") == "http://localhost:8080"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.json:1:1: a configuration file is one JSON object: expected '{'"),
        ("[]", "f.json:1:1: a configuration file is one JSON object: expected '{'"),
        ('{"Urls" "x"}', "f.json:1:9: Urls: expected ':'"),
        ('{\n  "Service": {"CommandTimeout": 5s}\n}', "f.json:2:33: Service:CommandTimeout: '5s' is no JSON value"),
        ('{"a": 1 "b": 2}', "f.json:1:9: expected ',' or '}'"),
        ('{"a": "x', "f.json:1:7: a: the text has no closing quote"),
        ('{"a": "\\q"}', "f.json:1:7: a: the text holds an unknown escape sequence"),
        ('{"a": }', "f.json:1:7: a: '}' is no JSON value"),
        ('{"a": 1', "f.json:1:8: expected ',' or '}'"),
        ("{ /* never closed", "f.json:1:3: the comment has no closing */"),
        ('{"a": 1} x', "f.json:1:10: nothing may follow"),
        ('{"a": "x\ty"}', "f.json:1:7: a: the text holds a control character, which is written \\u0009"),
        ('{"a": "\\ud800"}', "f.json:1:7: a: the text holds half of a surrogate pair"),
        ('{"Auth": {"JwtSecret": hunter2}}', "f.json:1:24: Auth:JwtSecret: the text here is no JSON value"),
        (
            '{"Kestrel": {"Certificates": {"a": {"Password": hunter2}}}}',
            "f.json:1:49: Kestrel:Certificates:a:Password: the text here",
        ),
        ('{"Urls": "a",\n "urls": "b"}', "f.json:2:2: urls: the key is given twice, first at f.json:1:2"),
        ('{"a": {}, "a": {}}', "f.json:1:11: a: the key is given twice, first at f.json:1:2"),
        ('{"a": {"b": 1}, "A:B": 2}', "f.json:1:17: A:B: the key is given twice, first at f.json:1:8"),
        ('{"a:b": 1, "a": 2}', "f.json:1:12: a: the key is given twice, first at f.json:1:2"),
    ],
)
def test_a_mistake_names_file_line_column_and_key(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse("f.json", text)
    assert str(raised.value).startswith(message)
    assert "hunter2" not in str(raised.value)


def test_a_too_deep_key_of_the_command_line_is_an_error_and_no_crash() -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        load(overrides={":".join("a" * 3000): "1"})


def test_a_variable_that_names_a_too_deep_key_is_ignored() -> None:
    settings = load(
        '{"Config": {"AddEnvironmentVariables": true}}',
        environment={"ConnectionStrings__" + "__".join("a" * 3000): "1"},
    )
    assert settings.names("ConnectionStrings") == ("Default",)


def test_a_too_deep_file_is_an_error_and_no_crash() -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse("f.json", '{"a":' * 100_000)


names = st.text(st.characters(codec="utf-8", exclude_characters=":"), min_size=1, max_size=5)
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=10)
documents = st.dictionaries(
    names,
    st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)),
    max_size=4,
)


def one_case(value: object) -> object:
    """Fold keys: keys that differ only in case are a mistake."""
    if isinstance(value, dict):
        return {name.casefold(): one_case(inner) for name, inner in value.items()}
    return [one_case(inner) for inner in value] if isinstance(value, list) else value


def texts_of(value: object, path: str = "") -> dict[str, str | None]:
    """Return the document as path → text, as an oracle."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        result: dict[str, str | None] = {}
        for name, inner in items:
            result |= texts_of(inner, f"{path}:{name}" if path else str(name))
        return result
    if value is None or isinstance(value, str):
        return {path: value}
    return {path: json.dumps(value)}


@given(documents.map(one_case))
def test_any_json_object_is_parsed_like_json(document: object) -> None:
    root = parse("f.json", json.dumps(document))
    assert {path: scalar.text for path, scalar in leaves(root)} == texts_of(document)


@given(st.text(max_size=40))
def test_any_text_gives_a_section_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert isinstance(parse("f.json", text), Section)


trees = documents.map(one_case).map(lambda document: parse("f.json", json.dumps(document)))


@given(trees, trees, trees)
def test_merging_is_associative(first: Section, second: Section, third: Section) -> None:
    assert dict(leaves(merge(merge(first, second), third))) == dict(leaves(merge(first, merge(second, third))))


@given(trees, trees)
def test_every_value_of_the_later_source_survives_a_merge(base: Section, over: Section) -> None:
    merged: dict[str, Scalar] = dict(leaves(merge(base, over)))
    assert dict(leaves(over)).items() <= merged.items()


FORMER = "HttpServer:Shutdown:GoodbyeTime"
PRESENT = "HttpServer:Shutdown:ConnectionCloseTime"


def test_a_former_name_of_a_key_is_accepted_with_a_warning_in_every_source() -> None:
    text = '{"Config": {"AddEnvironmentVariables": true}, "Kestrel": {"shutdown": {"goodbyeTime": "1s"}}}'
    variables = {"HttpServer__Shutdown__GoodbyeTime": "2s"}
    for settings, seconds in (
        (load(text), 1.0),
        (load(text, environment=variables), 2.0),
        (load(text, environment=variables, overrides={FORMER: "3s"}), 3.0),
    ):
        assert settings.seconds(PRESENT) == seconds
        (warning,) = former_keys(settings.root)
        assert FORMER in warning
        assert PRESENT in warning
    files = load_files([SourceText("a.json", text)])
    assert assemble(files, (), {}).unknown == ()


def test_the_present_name_of_a_key_precedes_a_former_one_of_the_same_or_an_earlier_source() -> None:
    both = load('{"HttpServer": {"Shutdown": {"ConnectionCloseTime": "4s", "GoodbyeTime": "5s"}}}')
    later = load('{"HttpServer": {"Shutdown": {"GoodbyeTime": "5s"}}}', overrides={PRESENT: "4s"})
    assert [(item.seconds(PRESENT), [*former_keys(item.root)]) for item in (both, later)] == [(4.0, [])] * 2
