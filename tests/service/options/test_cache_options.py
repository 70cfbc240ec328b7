"""What cannot be a part of a path, or a header, is reported at the start."""

from __future__ import annotations

import pytest

from rowcall.core.cache.options import CacheOptions
from rowcall.core.config import assemble
from rowcall.core.config.tree import Section
from rowcall.core.sections.errors import ConfigError
from rowcall.service.options.capabilities.cache import cache_options
from rowcall.service.startup_error import StartupError


def options(key: str, value: str) -> CacheOptions:
    values = [("CacheOptions:Enabled", "true"), (f"CacheOptions:{key}", value)]
    return cache_options(assemble(Section(), values, {}).settings)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("InvalidateCacheSuffix", "{x}", "InvalidateCacheSuffix: '{x}' cannot be the end of a path"),
        ("InvalidateCacheSuffix", "/forget?all", "'forget.all' cannot be the end of a path"),
        ("InvalidateCacheSuffix", "..", "cannot be the end of a path"),
        ("InvalidateCacheSuffix", "a//b", "cannot be the end of a path"),
        ("TagsPath", "forget", "TagsPath: 'forget' is no path such as"),
        ("TagsPath", "/forget/{tag}", "is no path such as"),
        ("StatusHeader", "X Cache", "StatusHeader: 'X Cache' is not the name of a header"),
    ],
)
def test_an_unusable_cache_setting_stops_the_start(key: str, value: str, why: str) -> None:
    with pytest.raises((ConfigError, StartupError), match=why):
        options(key, value)


@pytest.mark.parametrize(
    ("value", "suffix"), [("/purge/", "purge"), ("a/b", "a/b"), ("  ", None), ("/", None), ("", None)]
)
def test_a_suffix_has_no_leading_and_trailing_slashes(value: str, suffix: str | None) -> None:
    assert options("InvalidateCacheSuffix", value).suffix == suffix
