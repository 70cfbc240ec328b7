"""The JSON Schema of the configuration, checked by a library (command-7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from rowcall.core.config import KEYS, KeyType, Settings
from rowcall.core.config.output.effective import effective
from rowcall.core.config.output.printing import format_entries
from rowcall.core.config.output.schema import schema
from rowcall.core.config.output.starter import starter
from rowcall.core.config.relaxed_json import parse
from rowcall.core.config.tree import Node, Scalar

SCHEMA = json.loads(json.dumps(schema()))
VALIDATOR = Draft7Validator(SCHEMA)


def plain(text: str) -> Any:
    """Return a configuration file as data, with numbers and words as in JSON."""
    return _plain(parse("f.json", text), text.splitlines())


def _plain(node: Node, lines: list[str]) -> Any:
    if isinstance(node, Scalar):
        quoted = lines[node.origin.line - 1][node.origin.column - 1] == '"'
        return node.text if quoted or node.text is None else json.loads(node.text)
    children = {child.name: _plain(child.node, lines) for child in node}
    return list(children.values()) if node.is_array else children


def test_the_schema_is_valid_for_draft_07() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert "draft-07" in SCHEMA["$schema"]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        starter(),
        format_entries(effective(Settings())),
        (Path(__file__).parent / "established.json").read_text(encoding="utf-8").replace('"Kestrel"', '"HttpServer"'),
    ],
    ids=["nothing", "starter", "everything", "established"],
)
def test_real_files_are_valid_for_the_schema(text: str) -> None:
    assert [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(plain(text))] == []


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"Service": {"LogCommands": "maybe"}}, "$.Service.LogCommands"),
        ({"HttpServer": {"Workers": 1.5}}, "$.HttpServer.Workers"),
        ({"Service": {"CommentsMode": "All"}}, "$.Service.CommentsMode"),
        ({"Urls": None}, "$.Urls"),
        ({"Service": {"IncludeSchemas": "x"}}, "$.Service.IncludeSchemas"),
        ({"Auth": {"Schemes": {"a": {"Type": "Nonsense"}}}}, "$.Auth.Schemes.a.Type"),
        ({"Service": {"OpenApiOptions": {"Servers": [{"Url": 1}]}}}, "$.Service.OpenApiOptions.Servers[0].Url"),
    ],
)
def test_a_wrong_value_is_found(value: dict[str, Any], path: str) -> None:
    assert [error.json_path for error in VALIDATOR.iter_errors(value)] == [path]


def test_every_key_is_described_with_its_default() -> None:
    for key in KEYS:
        if {"<", "["} & set(key.path):
            continue
        result = SCHEMA
        for name in key.path.split(":"):
            result = result["properties"][name]
        assert result["description"].startswith(key.meaning)
        if key.type is not KeyType.SECTION:
            assert result["default"] == json.loads(json.dumps(key.default))
