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
def test_what_is_no_duration_is_the_default_and_nothing_is_no_limit(text: str, seconds: float) -> None:
    assert options(PerTestTimeout=text).timeout == seconds


def test_tags_have_no_case_and_are_separated_as_one_likes() -> None:
    assert options(Tag="Slow, beds  x").tags == {"slow", "beds", "x"}


def test_steps_are_named_or_stand_in_the_list() -> None:
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
def test_what_cannot_be_is_reported(keys: dict[str, str], why: str) -> None:
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
