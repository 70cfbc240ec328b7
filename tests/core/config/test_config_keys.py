"""The table contains every key of NpgsqlRest, with its type and its default (`tests/data/config-keys.json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rowcall.core.config import KEYS, Key, KeyType

KEYS_FILE = Path(__file__).resolve().parents[2] / "data" / "config-keys.json"

TYPES = {
    "string": {KeyType.TEXT, KeyType.INTERVAL},
    "bool": {KeyType.BOOL},
    "int": {KeyType.INT},
    "enum": {KeyType.CHOICE},
    "object": {KeyType.SECTION},
    "string[]": {KeyType.TEXTS},
    "number[]": {KeyType.NUMBERS},
    "map<string,string>": {KeyType.TEXT_MAP},
    "map<string,enum>": {KeyType.TEXT_MAP},
    "map<string,object>": {KeyType.OBJECT_MAP},
    "object[]": {KeyType.OBJECTS},
    "(string|object)[]": {KeyType.STEPS},
    "string[]|map<string,string>": {KeyType.NAMES},
    "any": {KeyType.ANY},
}

OUR_OWN_DEFAULT = {
    # names of the product
    "Log:MinimalLevels",
    "TestRunner:LoggerName",
    "Service:OpenApiOptions:FileName",
    "Service:McpOptions:ToolSchemas:OpenAiFileName",
    "Service:McpOptions:ToolSchemas:AnthropicFileName",
    # a cancelled statement is 504: a 205 would report success to the client
    "ErrorHandlingOptions:ErrorCodePolicies",
    # what a caller cannot choose is no part of what it is reported
    "Service:ClientCodeGen:ErrorType",
    "Service:ClientCodeGen:OmitAutomaticParameters",
    "Service:DartClientCodeGen:OmitAutomaticParameters",
    "Service:HttpFileOptions:OmitAutomaticParameters",
    "Service:OpenApiOptions:OmitAutomaticParameters",
}


MORE_CHOICES = {"Service:DefaultHttpMethod", "ValidationOptions:Rules:<name>:Type"}
"""PATCH is a method like others; rules for numbers and arrays exist only here."""


def listed() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(KEYS_FILE.read_text(encoding="utf-8"))
    return [{**entry, "path": entry["path"].replace("Kestrel", "HttpServer")} for entry in entries]


ROWS = {key.path: key for key in KEYS}


def plain(value: object) -> object:
    """Return the value after a round trip through JSON."""
    return json.loads(json.dumps(value))


def test_every_key_is_in_the_table() -> None:
    assert [entry["path"] for entry in listed() if entry["path"] not in ROWS] == []


def differences(entry: Mapping[str, Any], key: Key) -> list[str]:
    result = []
    if key.type not in TYPES[entry["type"]]:
        result.append(f"type {key.type.name}, not {entry['type']}")
    if key.path not in OUR_OWN_DEFAULT and plain(key.default) != entry["default"]:
        result.append(f"default {key.default!r}, not {entry['default']!r}")
    if key.nullable != entry["nullable"]:
        result.append(f"nullable {key.nullable}")
    if key.path not in MORE_CHOICES and set(key.choices) != set(entry.get("enum", ())):
        result.append(f"choices {key.choices}")
    return result


def test_every_key_has_its_type_default_nullability_and_choices() -> None:
    compared = {entry["path"]: differences(entry, ROWS[entry["path"]]) for entry in listed() if entry["path"] in ROWS}
    assert {path: result for path, result in compared.items() if result} == {}


def test_no_key_is_declared_twice() -> None:
    assert len({key.path.casefold() for key in KEYS}) == len(KEYS)


def test_every_key_has_a_description() -> None:
    assert [key.path for key in KEYS if not key.meaning.endswith(".")] == []


def test_every_default_is_of_its_type() -> None:
    assert [key.path for key in KEYS if not fits(key)] == []


def fits(key: Key) -> bool:
    if key.default is None:
        return key.nullable
    match key.type:
        case KeyType.BOOL:
            return isinstance(key.default, bool)
        case KeyType.INT:
            return isinstance(key.default, int)
        case KeyType.CHOICE:
            return key.default in key.choices
        case KeyType.SECTION | KeyType.TEXT_MAP | KeyType.OBJECT_MAP:
            return isinstance(key.default, Mapping)
        case KeyType.TEXT | KeyType.INTERVAL:
            return isinstance(key.default, str)
        case _:
            return isinstance(key.default, Sequence)
