"""Build a JSON Schema (draft-07) from the table, for editors and for checks before a deployment (command-7)."""

from __future__ import annotations

from typing import Any

from rowcall.core.config.output.effective import meaning_of
from rowcall.core.config.table import KEY_TREE, KeyNode
from rowcall.core.sections.keys import Key, KeyType

DRAFT = "https://json-schema.org/draft-07/schema#"

_TYPES = {
    KeyType.TEXT: "string",
    KeyType.INTERVAL: "string",
    KeyType.BOOL: "boolean",
}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_TEXT_MAP = {"type": "object", "additionalProperties": {"type": ["string", "null"]}}


def schema() -> dict[str, Any]:
    """Return the schema as plain data with properties in documented order. It requires no key and forbids none."""
    return {
        "$schema": DRAFT,
        "title": "rowcall configuration",
        "description": "Configuration of rowcall: PostgreSQL routines as HTTP endpoints.",
        "type": "object",
        "properties": {below.name: _of(below) for below in KEY_TREE.key_nodes.values()},
    }


def _of(node_of_key: KeyNode) -> dict[str, Any]:
    key = node_of_key.key
    if key is None:
        return _section(node_of_key)
    described = {**_kind(node_of_key, key), "description": meaning_of(key)}
    return described if key.type is KeyType.SECTION else {**described, "default": key.default}


def _kind(node_of_key: KeyNode, key: Key) -> dict[str, Any]:
    match key.type:
        case KeyType.CHOICE:
            return {"enum": [None, *key.choices] if key.nullable else list(key.choices)}
        case KeyType.ANY:
            return {}
        case KeyType.NAMES:
            return {"anyOf": [_TEXTS, _TEXT_MAP]}
        case KeyType.SECTION | KeyType.OBJECT_MAP | KeyType.TEXT_MAP:
            return _nullable(_section(node_of_key), key)
        case KeyType.TEXTS | KeyType.NUMBERS | KeyType.OBJECTS | KeyType.STEPS:
            return _nullable({"type": "array", "items": _item(node_of_key, key)}, key)
        case KeyType.INT:
            return _nullable({"type": "integer", "minimum": key.minimum, "maximum": key.maximum}, key)
        case kind:
            return _nullable({"type": _TYPES[kind]}, key)


def _nullable(kind: dict[str, Any], key: Key) -> dict[str, Any]:
    return {**kind, "type": [kind["type"], "null"]} if key.nullable else kind


def _item(node_of_key: KeyNode, key: Key) -> dict[str, Any]:
    match key.type:
        case KeyType.TEXTS:
            return {"type": "string"}
        case KeyType.NUMBERS:
            return {"type": "number"}
        case KeyType.STEPS:
            return {"anyOf": [{"type": "string"}, _section(node_of_key.child("0") or node_of_key)]}
        case _:
            return _section(node_of_key.child("0") or node_of_key)


def _section(node_of_key: KeyNode) -> dict[str, Any]:
    """Return the schema of a section: fixed names as properties, user-defined names as additional properties."""
    result: dict[str, Any] = {
        "type": "object",
        "properties": {below.name: _of(below) for below in node_of_key.key_nodes.values() if not below.is_wild},
    }
    wild = next((below for below in node_of_key.key_nodes.values() if below.name.startswith("<")), None)
    if wild is not None:
        result["additionalProperties"] = _of(wild)
    elif node_of_key.key is not None and node_of_key.key.type is KeyType.TEXT_MAP:
        result["additionalProperties"] = _TEXT_MAP["additionalProperties"]
    return result
