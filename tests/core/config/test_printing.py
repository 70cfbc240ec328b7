"""The effective configuration as commented JSON, which can be read again (command-5)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from rowcall.core.config import KEYS, Key, KeyType, Settings, SourceText, assemble, load_files
from rowcall.core.config.output.effective import effective
from rowcall.core.config.output.printing import find_entries, format_entries
from rowcall.core.config.output.starter import starter
from rowcall.core.config.relaxed_json import parse
from tests.harness.effort import examples


def settings(text: str, **environment: str) -> Settings:
    return assemble(load_files([SourceText("f.json", text)]), [], environment).settings


def shown(text: str, word: str = "", **environment: str) -> str:
    entries = effective(settings(text, **environment))
    return format_entries(find_entries(entries, word) if word else entries)


def test_every_key_follows_its_description_in_canonical_spelling() -> None:
    text = shown('{"service": {"urlpathprefix": "/v1"}}')
    assert '    // Prefix of generated paths. null or an empty text: none.\n    "UrlPathPrefix": "/v1",\n' in text


def test_placeholders_are_resolved_if_their_variables_are_set() -> None:
    text = '{"Urls": "http://{HOST}:{!PORT:80}/{!NOT_SET}", "ApplicationName": "{NOT_SET}"}'
    assert '"Urls": "http://h:80/{!NOT_SET}"' in shown(text, HOST="h")
    assert '"ApplicationName": "{NOT_SET}"' in shown(text)


def test_a_number_with_thousands_of_digits_is_shown_unchanged() -> None:
    assert f'"Workers": "{"9" * 5000}"' in shown(f'{{"HttpServer": {{"Workers": {"9" * 5000}}}}}', "Workers")


def test_values_have_the_type_of_their_key() -> None:
    text = shown('{"HttpServer": {"Workers": "4"}, "Service": {"LogCommands": "yes", "SchemaSimilarTo": "12"}}')
    assert '"Workers": 4' in text
    assert '"LogCommands": true' in text
    assert '"SchemaSimilarTo": "12"' in text
    assert '["08000",' in text


@pytest.mark.parametrize("text", ["inf", "nan", "1e5", "007", "08000", "1_000", "0.50", "-0", "٣", "9" * 400 + ".5"])
def test_texts_that_look_like_numbers_are_printed_as_texts(text: str) -> None:
    entries = effective(assemble(load_files([]), [("CacheOptions:Profiles:a:When:0:Value", text)], {}).settings)
    (value,) = json.loads(_without_comments(format_entries(find_entries(entries, "a"))))["CacheOptions"]["Profiles"][
        "a"
    ]["When"]
    assert value["Value"] == text


@pytest.mark.parametrize(
    "text",
    [
        '{"ConnectionStrings": {"Default": "Host=h;Password=geheim"}}',
        '{"Auth": {"JwtSecret": "geheim", "Schemes": {"a": {"Type": "Jwt", "JwtSecret": "geheim"}}}}',
        '{"Auth": {"External": {"Google": {"ClientSecret": "geheim"}}}}',
        '{"Service": {"AuthenticationOptions": {"BasicAuth": {"Users": {"me": "geheim"}}}}}',
        '{"CacheOptions": {"RedisConfiguration": "localhost,password=geheim"}}',
        '{"HttpServer": {"Certificates": {"Default": {"Path": "a.pfx", "Password": "geheim"}}}}',
        '{"HttpServer": {"Endpoints": {"A": {"Url": "https://x", "Certificate": {"Password": "geheim"}}}}}',
        '{"Log": {"OTLPHeaders": {"authorization": "geheim"}}}',
        '{"Service": {"ProxyOptions": {"Host": "http://me:geheim@legacy"}}}',
        '{"Service": {"ProxyOptions": {"Host": "{LEGACY}"}}}',
        '{"Service": {"ProxyOptions": {"Host": "{!LEGACY:none}"}}}',
        '{"Service": {"ProxyOptions": {"Host": "{!LEGACY:http://localhost}"}}}',
        '{"Service": {"CustomRequestHeaders": {"X-Source": "{LEGACY}"}}}',
        '{"Log": {"OTLPEndpoint": "{LEGACY}"}}',
        '{"HttpServer": {"Certificates": {"Default": {"Path": "{LEGACY}"}}}}',
        '{"TestRunner": {"Setup": [{"Command": "fetch {LEGACY}"}]}}',
        '{"ConnectionStrings": {"Default": "Host=h;Password={PW}"}}',
        '{"Service": {"CustomRequestHeaders": {"Authorization": "Bearer geheim", "X-Api-Key": "geheim"}}}',
        '{"Service": {"ServerSentEventsResponseHeaders": {"Set-Cookie": "a=geheim"}}}',
        '{"HttpServer": {"Endpoints": {"A": {"Other": {"KeyPassword": "geheim"}}}}}',
    ],
)
def test_no_secret_is_shown(text: str) -> None:
    assert "geheim" not in shown(text, PW="geheim", LEGACY="http://me:geheim@legacy")


def test_no_secret_of_a_variable_that_replaces_an_address_is_shown() -> None:
    text = '{"Service": {"ProxyOptions": {"Host": "{!LEGACY:http://localhost}"}}}'
    assert "geheim" not in shown(text, LEGACY="http=x;Password=geheim")


def test_a_claim_mapping_is_shown_even_if_a_name_contains_token() -> None:
    mapping = '{"Service": {"AuthenticationOptions": {"ContextKeyClaimsMapping": {"request.token": "token_id"}}}}'
    assert '"request.token": "token_id"' in shown(mapping)


def test_a_filter_matches_text_across_a_key_and_its_value() -> None:
    assert '"Urls": "http://x"' in shown('{"Urls": "http://x"}', '"urls": "http://x')


def test_a_filter_matches_key_description_or_value_and_keeps_the_sections() -> None:
    assert json.loads(_without_comments(shown("{}", "kebab"))) == {"Service": {"KebabCaseUrls": True}}
    body = json.loads(_without_comments(shown('{"Service": {"UrlPathPrefix": "/zebra"}}', "ZEBRA")))
    assert body == {"Service": {"UrlPathPrefix": "/zebra"}}


def test_a_section_whose_name_matches_is_printed_completely() -> None:
    body = json.loads(_without_comments(shown("{}", "retryoptions")))
    assert set(body["ConnectionSettings"]["RetryOptions"]) == {"Enabled", "RetrySequenceSeconds", "ErrorCodes"}


def test_a_list_with_a_matching_element_is_printed_completely() -> None:
    body = json.loads(_without_comments(shown("{}", "57P03")))
    assert len(body["ConnectionSettings"]["RetryOptions"]["ErrorCodes"]) == 10


def test_unicode_line_separators_are_preserved_in_a_long_list() -> None:
    codes = [f"a\u2028b\x85{'c' * 100}", "d"]
    text = shown(json.dumps({"ConnectionSettings": {"RetryOptions": {"ErrorCodes": codes}}}), "ErrorCodes")
    assert json.loads(_without_comments(text))["ConnectionSettings"]["RetryOptions"]["ErrorCodes"] == codes


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("//"))


def test_a_filter_without_matches_finds_nothing() -> None:
    assert find_entries(effective(Settings()), "no such thing") == ()


VALUES = {
    KeyType.TEXT: st.text(max_size=12),
    KeyType.BOOL: st.sampled_from(["true", "No", "1"]),
    KeyType.INT: st.integers(0, 10**9).map(str),
    KeyType.INTERVAL: st.sampled_from(["5s", "00:00:05"]),
}
SETTABLE = [
    key
    for key in KEYS
    if (key.type in VALUES or key.type is KeyType.CHOICE)
    and not key.secret
    and not {"<", "["} & set(key.path)
    and not key.path.startswith("Config:")
]


@st.composite
def overrides(draw: st.DrawFn) -> list[tuple[str, str]]:
    keys: list[Key] = draw(st.lists(st.sampled_from(SETTABLE), max_size=6, unique_by=lambda key: key.path))
    return [(key.path, draw(st.sampled_from(key.choices) if key.choices else VALUES[key.type])) for key in keys]


@pytest.mark.slow
@effort(max_examples=examples(25), deadline=None)
@given(overrides())
def test_a_printed_configuration_can_be_read_again(given_: list[tuple[str, str]]) -> None:
    first = effective(assemble(load_files([]), given_, {}).settings)
    again = assemble(load_files([SourceText("printed", format_entries(first))]), [], {})
    assert again.unknown == ()
    assert format_entries(effective(again.settings)) == format_entries(first)


@effort(max_examples=examples(25), deadline=None)
@given(overrides(), st.text(min_size=1, max_size=4))
def test_a_filtered_configuration_can_be_read_again(given_: list[tuple[str, str]], word: str) -> None:
    entries = find_entries(effective(assemble(load_files([]), given_, {}).settings), word)
    parse("printed", format_entries(entries))


def test_the_starter_file_equals_the_defaults() -> None:
    started = assemble(load_files([SourceText("rowcall.json", starter())]), [], {})
    assert started.unknown == ()
    assert format_entries(effective(started.settings)) == format_entries(effective(Settings()))
