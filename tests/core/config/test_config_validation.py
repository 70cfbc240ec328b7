"""Unknown keys are reported once, at their highest level, with the key that was probably meant (configuration-14 to
configuration-16)."""

from __future__ import annotations

import pytest

from rowcall.core.config import assemble
from rowcall.core.config.loading import SourceText, load_files


def unknown(text: str, *overrides: tuple[str, str], environment: dict[str, str] | None = None) -> list[str]:
    loaded = assemble(load_files([SourceText("f.json", text)]), overrides, environment or {})
    return [str(key) for key in loaded.unknown]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"service": {"URLPATHPREFIX": "x"}}',
        '{"ConnectionStrings": {"Anything": "x"}}',
        '{"Log": {"MinimalLevels": {"my.channel": "Debug"}}}',
        '{"HttpServer": {"Endpoints": {"Mine": {"Url": "http://x", "Whatever": 1}}, "Limits": {"Http2": {}}}}',
        '{"Kestrel": {"Limits": {"MaxRequestBodySize": 1}}}',
        '{"Service": {"IncludeSchemas": ["a"]}}',
        '{"CommandRetryOptions": {"Strategies": {"mine": {"ErrorCodes": ["1"], "Extra": 1}}}}',
    ],
)
def test_known_keys_and_open_maps_are_accepted(text: str) -> None:
    assert unknown(text) == []


def test_a_misspelled_key_is_reported_with_its_position_and_the_right_one() -> None:
    assert unknown('{\n  "Service": { "KebabCaseUrl": true }\n}') == [
        "Service:KebabCaseUrl at f.json:2:16 (did you mean Service:KebabCaseUrls?)"
    ]


def test_a_key_of_another_section_is_recognised() -> None:
    assert unknown('{"CommentsMode": "Ignore"}') == ["CommentsMode at f.json:1:2 (did you mean Service:CommentsMode?)"]


def test_a_key_of_another_type_is_unknown_beside_its_type() -> None:
    text = '{"Auth": {"Schemes": {"a": {"Type": "cookies", "JwtSecret": "x", "CookieName": "y", "Enabled": true}}}}'
    assert unknown(text) == ["Auth:Schemes:a:JwtSecret at f.json:1:48: it belongs to Jwt, and the Type here is Cookies"]


@pytest.mark.parametrize("kind", ["{}", '{"Type": "Nonsense", "JwtSecret": "x"}', '{"JwtSecret": "x"}'])
def test_without_a_type_the_keys_of_all_types_are_known(kind: str) -> None:
    assert unknown(f'{{"Auth": {{"Schemes": {{"a": {kind}}}}}}}') == []


def test_a_body_below_a_user_defined_name_is_checked() -> None:
    assert unknown('{"CacheOptions": {"Profiles": {"mine": {"Expiraton": "5s"}}}}') == [
        "CacheOptions:Profiles:mine:Expiraton at f.json:1:41 (did you mean CacheOptions:Profiles:mine:Expiration?)"
    ]


def test_a_misspelled_key_beside_user_defined_names_is_reported() -> None:
    text = '{"Auth": {"External": {"Enabeld": true, "Mine": {"Enabled": true}}}}'
    assert unknown(text) == ["Auth:External:Enabeld at f.json:1:24 (did you mean Auth:External:Enabled?)"]


def test_a_former_key_is_reported_with_its_present_name() -> None:
    assert unknown('{"Auth": {"JwtExpireMinutes": 5}}') == [
        "Auth:JwtExpireMinutes at f.json:1:11 (did you mean Auth:JwtExpire?)"
    ]


def test_an_unknown_section_is_named_once() -> None:
    assert unknown('{"Nonsense": {"A": 1, "B": {"C": 2}}}') == ["Nonsense at f.json:1:2"]


def test_the_command_line_is_checked_too() -> None:
    assert unknown("{}", ("Servce:X", "1")) == ["Servce at command line (did you mean Service?)"]


def test_the_environment_is_not_checked() -> None:
    text = '{"Config": {"AddEnvironmentVariables": true}}'
    assert unknown(text, environment={"PATH": "/bin", "Service__Nonsense": "1"}) == []


def test_a_key_of_the_server_section_is_checked_against_its_schema() -> None:
    assert unknown('{"Kestrel": {"Limits": {"MaxRequestBodySise": 1}}}') == [
        "HttpServer:Limits:MaxRequestBodySise at f.json:1:25 (did you mean HttpServer:Limits:MaxRequestBodySize?)"
    ]


def test_similar_keys_are_suggested_for_readable_keys_only() -> None:
    result = unknown('{"Service": {' + ", ".join(f'"KebabCaseUrls{number:04}": 1' for number in range(300)) + "}}")
    assert len(result) == 300
    assert result[0].endswith("(did you mean Service:KebabCaseUrls?)")
    assert result[299].startswith("Service:KebabCaseUrls0299 at")
    assert "did you mean" not in result[299]
