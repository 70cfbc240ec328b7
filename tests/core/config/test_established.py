"""A configuration of NpgsqlRest loads unchanged except for the name of its section."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rowcall.core.config import LoadedConfiguration, SourceText, assemble, load_files
from rowcall.core.config.checks import invalid_settings
from rowcall.core.config.output.effective import Entry, effective
from rowcall.core.config.relaxed_json import parse
from rowcall.core.config.tree import Section, find
from rowcall.core.config.tree import leaves as leaves_of

FILE = Path(__file__).parent / "established.json"
TEXT = FILE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def loaded() -> LoadedConfiguration:
    environment = {"PORT": "9000", "JWT_SECRET": "x" * 32, "PFX_PASSWORD": "pfx"}
    return assemble(load_files([SourceText(FILE.name, TEXT)]), [], environment)


def test_every_key_is_known(loaded: LoadedConfiguration) -> None:
    assert [str(key) for key in loaded.unknown] == []


def test_every_value_is_of_its_type(loaded: LoadedConfiguration) -> None:
    assert [str(mistake) for mistake in invalid_settings(loaded.settings)] == []


def test_values_are_read_with_their_placeholders(loaded: LoadedConfiguration) -> None:
    settings = loaded.settings
    assert settings.text("Urls") == "http://0.0.0.0:9000"
    assert settings.text("EnvironmentName") == "Production"
    endpoints = settings.value("HttpServer:Endpoints")
    assert isinstance(endpoints, dict)
    assert endpoints["Secure"]["Certificate"] == {"Password": "pfx", "Path": "./web.pfx"}
    assert settings.integer("HttpServer:Limits:MaxRequestBodySize") == 31_457_280
    assert settings.integer_or_none("ForwardedHeaders:ForwardLimit") is None
    assert settings.seconds("HttpServer:Limits:KeepAliveTimeout") == 130
    assert settings.seconds("Auth:Schemes:kiosk:CookieValid") == 1200
    assert settings.texts("CacheOptions:Profiles:fast:Parameters") == ("id",)
    assert settings.name_defaults("Service:AvailableEnvVars") == {"STAGE": "dev"}


def test_every_value_is_shown(loaded: LoadedConfiguration) -> None:
    """Except for secrets, and values of placeholders."""
    shown = dict(_values(effective(loaded.settings), ""))
    value = parse(FILE.name, TEXT.replace('"Kestrel"', '"HttpServer"'))
    missing = [
        path
        for path, scalar in leaves_of(value)
        if "{" not in (scalar.text or "") and path not in shown and "Certificate" not in path
    ]
    assert missing == []
    assert isinstance(find(value, "Service"), Section)


def _values(entries: tuple[Entry, ...], path: str) -> list[tuple[str, object]]:
    result: list[tuple[str, object]] = []
    for entry in entries:
        below = f"{path}:{entry.name}" if path else entry.name
        if entry.entries is not None:
            result += _values(entry.entries, below)
        else:
            plain = parse("shown", json.dumps({"value": entry.value}))
            result += [(below + leaf[5:], scalar.text) for leaf, scalar in leaves_of(plain)]
    return result
