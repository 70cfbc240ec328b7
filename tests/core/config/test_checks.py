"""Checks of a whole configuration: wrong values, and keys without effect."""

from __future__ import annotations

import pytest

from rowcall.core.config import Settings, SourceText, assemble, load_files
from rowcall.core.config.checks import invalid_settings


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
        '{"Auth": {"JwtAuth": true, "JwtClockSkew": "a while"}}',
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
