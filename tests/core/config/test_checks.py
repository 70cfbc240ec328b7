"""Checks of a whole configuration: wrong values, and keys without effect."""

from __future__ import annotations

import dataclasses
import json

import pytest

from rowcall.core.config import KEYS, Settings, SourceText, assemble, load_files, table
from rowcall.core.config.checks import invalid_settings, without_effect
from rowcall.core.config.table import build_key_tree


def settings(text: str, **environment: str) -> Settings:
    return assemble(load_files([SourceText("f.json", text)]), [], environment).settings


def wrong(text: str, **environment: str) -> list[str]:
    return [str(mistake) for mistake in invalid_settings(settings(text, **environment)) if mistake.in_use]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"Service": {"LogCommands": "maybe"}}', "f.json:1:29: Service:LogCommands: 'maybe' is not a boolean"),
        ('{"HttpServer": {"Workers": 1.5}}', "f.json:1:28: HttpServer:Workers: '1.5' is not a whole number"),
        (
            '{"HttpServer": {"Workers": 3000000000}}',
            "f.json:1:28: HttpServer:Workers: 3000000000 is too large; the most",
        ),
        ('{"Service": {"CommandTimeout": "soon"}}', "f.json:1:32: Service:CommandTimeout: 'soon' is not a duration"),
        ('{"Service": {"CommentsMode": "All"}}', "f.json:1:30: Service:CommentsMode: 'All' is not allowed; allowed: O"),
        ('{"Urls": ["a"]}', "f.json:1:2: Urls: a single value is needed here, not a section"),
        ('{"Service": "x"}', "f.json:1:13: Service: a section is needed here, not a single value"),
        ('{"Service": {"IncludeSchemas": "x"}}', 'f.json:1:32: Service:IncludeSchemas: a list is needed, such as ["a"'),
        (
            '{"ErrorHandlingOptions": {"ErrorCodePolicies": {"Default": {}}}}',
            "f.json:1:27: ErrorHandlingOptions:ErrorCodePolicies: a list in [ ] is needed here, not a section",
        ),
        (
            '{"ErrorHandlingOptions": {"TimeoutErrorMapping": {"StatusCode": 1000}}}',
            "f.json:1:65: ErrorHandlingOptions:TimeoutErrorMapping:StatusCode: 1000 is too large; the most",
        ),
        (
            '{"RateLimiterOptions": {"Enabled": true, "Policies": [{"Name": "x"}]}}',
            "f.json:1:42: RateLimiterOptions:Policies: names with their values in { } are needed here, not a list",
        ),
        (
            '{"Auth": {"Schemes": {"a": "b"}}}',
            "f.json:1:28: Auth:Schemes:a: a section is needed here, not a single value",
        ),
        (
            '{"CommandRetryOptions": {"Strategies": {"a": ["40001"]}}}',
            "f.json:1:41: CommandRetryOptions:Strategies:a: names with their values in { } are needed here, not a list",
        ),
        (
            '{"ErrorHandlingOptions": {"ErrorCodePolicies": [null, "x"]}}',
            "f.json:1:55: ErrorHandlingOptions:ErrorCodePolicies:1: a section is needed here, not a single value",
        ),
        (
            '{"CommandRetryOptions": {"Strategies": {"a": {"ErrorCodes": [["40001"]]}}}}',
            "f.json:1:62: CommandRetryOptions:Strategies:a:ErrorCodes:0: a single value is needed here, not a section",
        ),
        (
            '{"Service": {"CustomRequestHeaders": {"a": ["b"]}}}',
            "f.json:1:39: Service:CustomRequestHeaders:a: a single value is needed here, not a section",
        ),
        (
            '{"CommandRetryOptions": {"Strategies": {"a": {"RetrySequenceSeconds": [1, -2]}}}}',
            "f.json:1:75: CommandRetryOptions:Strategies:a:RetrySequenceSeconds:1: '-2' is not a number of at least 0",
        ),
        (
            '{"Service": {"AvailableEnvVars": "HOME"}}',
            "f.json:1:34: Service:AvailableEnvVars: a list of names is needed, such as",
        ),
        (
            '{"Service": {"BeforeRoutineCommands": [{"Enabled": "perhaps", "Sql": "select 1"}]}}',
            "f.json:1:52: Service:BeforeRoutineCommands:0:Enabled: 'perhaps' is not a boolean",
        ),
        (
            '{"Auth": {"CookieAuth": true, "CookieValidDays": 3}}',
            "f.json:1:31: Auth:CookieValidDays: the key is called Auth:CookieValid now and takes a duration",
        ),
    ],
)
def test_a_wrong_value_is_reported_with_its_position_and_valid_values(text: str, message: str) -> None:
    (result,) = wrong(text)
    assert result.startswith(message)


def test_all_mistakes_are_found_at_once() -> None:
    assert len(wrong('{"Service": {"LogCommands": "x", "CommandTimeout": "y"}, "Log": {"ToConsole": "z"}}')) == 3


@pytest.mark.parametrize(
    "text",
    [
        '{"Service": {"LogCommands": "YES", "CommandTimeout": "", "CommentsMode": null}}',
        '{"HttpServer": {"Workers": "{NOT_SET}"}, "Service": {"LogCommands": "{!NOT_SET}"}}',
        '{"Stats": {"Enabled": false, "OutputFormat": "xml"}}',
        '{"Stats": {"OutputFormat": "xml"}}',
        '{"Auth": {"CookieValidDays": 3}}',
        '{"Config": {"ValidateConfigKeys": "Loudly"}}',
        '{"CacheOptions": {"Enabled": true, "Profiles": {"a": {"Expiration": "never"}}}}',
    ],
)
def test_valid_and_disabled_values_are_not_reported(text: str) -> None:
    assert wrong(text) == []


def test_a_value_is_checked_with_its_placeholders_resolved() -> None:
    assert wrong('{"HttpServer": {"Workers": "{COUNT}"}}', COUNT="2") == []
    assert wrong('{"HttpServer": {"Workers": "{COUNT}"}}', COUNT="two") == [
        "f.json:1:28: HttpServer:Workers: 'two' is not a whole number"
    ]


@pytest.fixture
def all_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table in which no key has an effect: which keys are pending changes with each new capability."""
    rooms = build_key_tree(dataclasses.replace(key, pending=True) for key in KEYS)
    monkeypatch.setattr(table, "KEY_TREE", rooms)
    monkeypatch.setattr("rowcall.core.config.checks.KEY_TREE", rooms)


@pytest.mark.usefixtures("all_pending")
@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"Cors": {"Enabled": True, "AllowedOrigins": ["*"]}}, ["Cors:Enabled at f.json:1:22"]),
        ({"Cors": {"Enabled": False, "AllowedOrigins": ["*"]}}, []),
        ({"Cors": {"AllowedOrigins": ["*"]}}, []),
        ({"Auth": {"CookieHttpOnly": True, "CookieSameSite": ""}}, []),
        ({"Auth": {"Schemes": {"a": {"Type": "Jwt"}}}}, ["Auth:Schemes:a:Type at f.json:1:37"]),
        ({"Auth": {"Schemes": {"a": {"Enabled": False, "Type": "Jwt"}}}}, []),
        ({"Urls": "http://localhost:8080", "ApplicationName": "x"}, ["ApplicationName at f.json:1:54"]),
        ({"CacheOptions": {"Enabled": "yes"}}, ["CacheOptions:Enabled at f.json:1:30"]),
    ],
)
def test_a_key_without_effect_is_reported_once_for_its_section_when_it_would_change_something(
    value: dict[str, object], found: list[str]
) -> None:
    assert list(without_effect(settings(json.dumps(value)))) == found


def test_what_has_an_effect_is_not_reported() -> None:
    assert without_effect(settings('{"Urls": "http://x", "Service": {"UrlPathPrefix": "/v1"}}')) == ()
