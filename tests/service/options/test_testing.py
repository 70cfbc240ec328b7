"""The keys of `TestRunner` as options (testing-2, testing-3)."""

from __future__ import annotations

import pytest

from rowcall.core.config import Settings, assemble
from rowcall.core.config.tree import Section
from rowcall.core.sections.errors import ConfigError
from rowcall.core.testing.options import PreparationStep, TestOptions
from rowcall.service.options.capabilities.testing import test_options as options_of
from rowcall.service.startup_error import StartupError


def settings(**keys: str) -> Settings:
    values = [(f"TestRunner:{key.replace('__', ':')}", value) for key, value in keys.items()]
    return assemble(Section(), values, {}).settings


def options(**keys: str) -> TestOptions:
    return options_of(settings(**keys))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5.0), ("250ms", 0.25), ("2m", 120.0), ("1h", 3600.0), ("00:01:30", 90.0),
        ("0", 0.0), ("-1", 0.0), ("soon", 30.0), ("", 30.0),
    ],
)  # fmt: skip
def test_an_invalid_test_timeout_is_the_default_and_an_empty_one_is_unlimited(text: str, seconds: float) -> None:
    assert options(PerTestTimeout=text).timeout == seconds


def test_tags_are_case_insensitive_and_split_at_commas_and_blanks() -> None:
    assert options(Tag="Slow, beds  x").tags == {"slow", "beds", "x"}


def test_setup_steps_are_named_or_inline() -> None:
    result = options(
        Steps__Seed__Sql="select 1",
        Steps__off__SqlFile="x.sql",
        Steps__off__Enabled="false",
        Steps__empty__ConnectionName="x",
        Setup__0="seed",
        Setup__1="OFF",
        Setup__2__Command="make db",
        Setup__2__WorkingDirectory="db",
    )
    assert result.setup == (
        PreparationStep("Seed", sql="select 1"),
        PreparationStep("Setup[3]", command="make db", folder="db"),
    )
    assert dict(result.steps) == {"seed": result.setup[0], "off": None}


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"Setup__0": "nope"}, "names the step 'nope'"),
        ({"Steps__a__Sql": "x", "Steps__a__Command": "y"}, "Sql and Command"),
        ({"Steps__a__Sql": "x", "Steps__a__Enabled": "perhaps"}, "neither true nor false"),
        ({"ResponseTempTable__Name": "a-b"}, "is no name"),
        ({"ResponseTempTable__MultiNamePattern": "all"}, "has no {n}"),
        ({"ResponseTempTable__DebugTable": "public.a b"}, "is no name"),
        ({"CoverageThreshold": "101"}, "more than 100"),
    ],
)
def test_invalid_test_settings_are_reported(keys: dict[str, str], why: str) -> None:
    with pytest.raises((ConfigError, StartupError), match=why):
        options(**keys)


def test_columns_with_an_empty_name_are_left_out() -> None:
    result = options(ResponseTempTable__Columns__Body="", ResponseTempTable__Columns__Status="code").table
    assert result.columns[:2] == (("Status", "code", "int"), ("ContentType", "content_type", "text"))
    everything = {
        f"ResponseTempTable__Columns__{kind}": "" for kind in ("Status", "Body", "ContentType", "Headers", "IsSuccess")
    }
    with pytest.raises((ConfigError, StartupError), match="all of them are left out"):
        options(**everything)
