"""Typed reads: what is accepted, and what the message says otherwise (reference 06, 1.4)."""

from __future__ import annotations

import pickle

import pytest

from rowcall.core.config import KEYS, ConfigError, KeyType, Settings, assemble
from rowcall.core.config.loading import SourceText, load_files


def given_(path: str, text: str) -> Settings:
    return assemble(load_files([]), [(path, text)], {}).settings


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("YES", True), ("1", True), ("False", False), ("0", False)]
)
def test_a_switch_is_read_in_words_of_any_case(text: str, value: bool) -> None:
    assert given_("Service:LogCommands", text).flag("Service:LogCommands") is value


def test_an_empty_text_is_the_default_of_a_switch_and_of_a_number() -> None:
    assert given_("Service:KebabCaseUrls", "").flag("Service:KebabCaseUrls") is True
    assert given_("HttpServer:Workers", "").integer_or_none("HttpServer:Workers") is None


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text_is_the_default_where_a_text_is_needed(text: str) -> None:
    assert given_("Log:FilePath", text).text("Log:FilePath") == "logs/log.txt"
    assert given_("StartupMessage", text).text_or_none("StartupMessage") == text


def test_bytes_may_be_more_than_fit_into_32_bits() -> None:
    path = "HttpServer:Limits:MaxRequestBodySize"
    assert given_(path, "5000000000").integer_or_none(path) == 5_000_000_000


def test_a_choice_is_read_in_any_case_and_given_in_its_canonical_spelling() -> None:
    assert given_("Service:CommentsMode", "parseall").choice("Service:CommentsMode") == "ParseAll"


@pytest.mark.parametrize(
    ("path", "text", "read", "message"),
    [
        ("Service:LogCommands", "maybe", "flag", "'maybe' is not a boolean; allowed: true, yes, 1, false, no, 0"),
        ("HttpServer:Workers", "many", "integer_or_none", "'many' is not a whole number"),
        ("HttpServer:Workers", "-1", "integer_or_none", "-1 is too small; the least allowed is 0"),
        ("HttpServer:Workers", "1_0", "integer_or_none", "'1_0' is not a whole number"),
        ("HttpServer:Workers", "٣", "integer_or_none", "'٣' is not a whole number"),
        ("HttpServer:Workers", "9" * 5000, "integer_or_none", "'999"),
        (
            "HttpServer:Workers",
            "2147483648",
            "integer_or_none",
            "2147483648 is too large; the most allowed is 2147483647",
        ),
        ("HttpServer:Limits:Http2:MaxFrameSize", "16777216", "integer_or_none", "16777216 is too large"),
        ("Service:CommandTimeout", "soon", "seconds_or_none", "'soon' is not a duration such as"),
        ("Service:CommentsMode", "All", "choice", "'All' is not allowed; allowed: OnlyAnnotated, OnlyWithHttpTag"),
        ("Service:IncludeSchemas", "a", "texts", "a list is needed"),
    ],
)
def test_a_wrong_value_is_named_with_its_key_and_what_is_allowed(path: str, text: str, read: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        getattr(given_(path, text), read)(path)
    assert str(raised.value).startswith(f"command line: {path}: {message}")


DELAYS = "ConnectionSettings:RetryOptions:RetrySequenceSeconds"


@pytest.mark.parametrize(("text", "number"), [("2", 2), ("0.5", 0.5), (".5", 0.5), ("1e-3", 0.001), ("0", 0)])
def test_numbers_are_read_as_decimals(text: str, number: float) -> None:
    assert given_(f"{DELAYS}:0", text).numbers(DELAYS) == (number,)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1_0", "1e999", "two"])
def test_what_nobody_can_wait_for_is_no_number(text: str) -> None:
    with pytest.raises(ConfigError, match="are not all numbers of at least 0"):
        given_(f"{DELAYS}:0", text).numbers(DELAYS)


def test_a_wrong_value_of_a_file_is_named_with_its_place() -> None:
    files = load_files([SourceText("f.json", '{\n "Service": { "LogCommands": "maybe" }}')])
    with pytest.raises(ConfigError, match=r"^f\.json:2:30: Service:LogCommands: "):
        assemble(files, [], {}).settings.flag("Service:LogCommands")


def test_a_section_where_a_value_belongs_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="Urls: a single value is needed"):
        given_("Urls:0", "x").text("Urls")


def test_an_open_map_keeps_the_spelling_and_sorts_numbers_before_names() -> None:
    settings = assemble(load_files([]), [(f"ConnectionStrings:{name}", "x") for name in ("b", "A", "10", "9")], {})
    assert settings.settings.names("ConnectionStrings") == ("9", "10", "A", "b")


def test_a_whole_section_is_given_as_plain_data() -> None:
    text = (
        '{"ErrorHandlingOptions": {"ErrorCodePolicies": [{"Name": "x", "ErrorCodes": {"08000": {"StatusCode": 500}}}]}}'
    )
    settings = assemble(load_files([SourceText("f.json", text)]), [], {}).settings
    assert settings.value("ErrorHandlingOptions:ErrorCodePolicies") == (
        {"Name": "x", "ErrorCodes": {"08000": {"StatusCode": "500"}}},
    )


def test_settings_travel_to_workers() -> None:
    settings = given_("Urls", "http://{HOST}")
    assert pickle.loads(pickle.dumps(settings)) == settings


READS = {
    KeyType.TEXT: Settings.text_or_none,
    KeyType.BOOL: Settings.flag,
    KeyType.INT: Settings.integer_or_none,
    KeyType.CHOICE: Settings.choice_or_none,
    KeyType.INTERVAL: Settings.seconds_or_none,
    KeyType.TEXTS: Settings.texts,
    KeyType.NUMBERS: Settings.numbers,
    KeyType.TEXT_MAP: Settings.names,
    KeyType.OBJECT_MAP: Settings.value,
    KeyType.OBJECTS: Settings.value,
    KeyType.SECTION: Settings.value,
    KeyType.STEPS: Settings.value,
    KeyType.NAMES: Settings.name_defaults,
    KeyType.ANY: Settings.value,
}


def test_the_default_of_every_key_can_be_read() -> None:
    settings = Settings()
    read = [(key, READS[key.type](settings, key.path)) for key in KEYS]
    assert [key.path for key, value in read if value is None and not key.nullable] == []


def test_a_key_below_a_name_of_the_users_own_is_read_by_that_name() -> None:
    settings = given_("CacheOptions:Profiles:Slow:Expiration", "5s")
    assert settings.seconds("CacheOptions:Profiles:slow:Expiration") == 5
    assert settings.names("CacheOptions:Profiles") == ("Slow",)


@pytest.mark.parametrize("text", ["", " "])
def test_a_null_is_no_limit_where_it_is_a_value_of_its_own(text: str) -> None:
    assert Settings().integer_or_none("CacheOptions:MaxCacheableRows") == 1000
    assert given_("CacheOptions:MaxCacheableRows", text).integer_or_none("CacheOptions:MaxCacheableRows") is None
    assert given_("Stats:CacheDuration", text).seconds_or_none("Stats:CacheDuration") is None
    assert given_("HealthChecks:CacheDuration", "{NOT_SET}").seconds_or_none("HealthChecks:CacheDuration") == 5


def test_an_unset_flag_can_be_told_from_a_false_one() -> None:
    assert Settings().flag_or_none("TestRunner:Coverage") is None
    assert given_("TestRunner:Coverage", "no").flag_or_none("TestRunner:Coverage") is False


def test_names_come_with_what_stands_in_for_them() -> None:
    path = "Service:AvailableEnvVars"
    texts = (
        '{"Service": {"AvailableEnvVars": ["A", "", "B"]}}',
        '{"Service": {"AvailableEnvVars": {"A": "x", "B": null, "C": {}}}}',
        "{}",
    )
    read = [assemble(load_files([SourceText("f.json", text)]), [], {}).settings.name_defaults(path) for text in texts]
    assert read == [{"A": None, "B": None}, {"A": "x", "B": None}, {}]


def test_reading_a_key_as_another_type_than_declared_is_noticed() -> None:
    with pytest.raises(TypeError):
        Settings().flag("Urls")
