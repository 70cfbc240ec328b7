"""Build the effective configuration as a tree for output: each key with its value and its meaning.

Keys that are not configured have their defaults. Placeholders are resolved if their variables are set; secrets are
masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rowcall.core.config.output.masking import (
    mask_in_addresses,
    mask_in_parts,
    mask_in_text,
    mask_whole,
    names_a_secret,
)
from rowcall.core.config.settings import BOOLEANS, Settings
from rowcall.core.config.table import KEY_TREE, KeyNode
from rowcall.core.config.tree import Child, Node, Origin, Scalar, Section
from rowcall.core.sections.keys import JsonValue, Key, KeyType

_SECRET_IN_PARTS = {"ConnectionStrings", "CacheOptions:RedisConfiguration"}
_FREE_TEXTS = {"command", "sql"}
"""Keys of test steps whose values are free text for a shell or for PostgreSQL."""
_NOWHERE = Origin("")
_MAPS = (KeyType.TEXT_MAP, KeyType.OBJECT_MAP)


@dataclass(frozen=True, slots=True)
class Entry:
    """One key for output: a section with its `entries`, or, if these are None, a `value`. comment: meaning of the key;
    empty: it is user-defined."""

    name: str
    comment: str
    value: JsonValue = None
    entries: tuple[Entry, ...] | None = None


def effective(settings: Settings) -> tuple[Entry, ...]:
    """Return all keys with their effective values, in documented order and canonical spelling, followed by the
    user-defined names of each section. Keys that are not set have their defaults; secrets are masked."""
    return _entries(KEY_TREE, settings.root, settings.variables)


def _entries(node_of_key: KeyNode, section: Section, variables: Mapping[str, str]) -> tuple[Entry, ...]:
    declared = [
        _entry(below, section.get(below.name), variables)
        for below in node_of_key.key_nodes.values()
        if not below.is_wild
    ]
    return (*declared, *_entries_of_users(node_of_key, section, variables))


def _entries_of_users(node_of_key: KeyNode, section: Section, variables: Mapping[str, str]) -> Iterator[Entry]:
    """Yield entries of user-defined names in a section with fixed keys, such as a provider of `Auth:External`.
    node_of_key: declares the section. variables: for placeholders."""
    wild = next((below for below in node_of_key.key_nodes.values() if below.is_wild), None)
    for child in section:
        if wild is not None and wild is node_of_key.child(child.name) and isinstance(child.node, Section):
            yield Entry(child.name, "", _plain(child, wild, variables))


def _entry(node_of_key: KeyNode, node: Node | None, variables: Mapping[str, str]) -> Entry:
    key = node_of_key.key
    comment = "" if key is None else meaning_of(key)
    if key is None or key.type is KeyType.SECTION:
        section = node if isinstance(node, Section) else Section()
        return Entry(node_of_key.name, comment, entries=_entries(node_of_key, section, variables))
    if key.type in _MAPS:
        return Entry(node_of_key.name, comment, entries=tuple(_map_entries(node_of_key, key, node, variables)))
    if node is None or (isinstance(node, Section) and not node.children):
        return Entry(node_of_key.name, comment, key.default)
    return Entry(node_of_key.name, comment, _plain(Child(node_of_key.name, node, _NOWHERE), node_of_key, variables))


def _map_entries(node_of_key: KeyNode, key: Key, node: Node | None, variables: Mapping[str, str]) -> Iterator[Entry]:
    if isinstance(node, Section) and node.children:
        for child in node:
            yield Entry(child.name, "", _plain(child, node_of_key.child(child.name) or node_of_key, variables))
        return
    defaults = key.default if isinstance(key.default, Mapping) else {}
    for name in sorted(defaults, key=str.casefold):
        yield Entry(name, "", defaults[name])


def meaning_of(key: Key) -> str:
    """Return the meaning of a key with its allowed values."""
    words = f" One of: {', '.join(key.choices)}." if key.choices else ""
    return key.meaning + words


def _plain(child: Child, node_of_key: KeyNode, variables: Mapping[str, str]) -> JsonValue:
    """Convert a node of the user's configuration to plain data, with masked secrets and the canonical spelling of
    declared names. node_of_key: the nearest key tree node that declares it."""
    node = child.node
    if isinstance(node, Scalar):
        return _masked_value(child.name, node.text, node_of_key.key, variables)
    below = [
        (
            inner_node.name if inner_node is not None and not inner_node.is_wild else inner.name,
            _plain(inner, inner_node or node_of_key, variables),
        )
        for inner in _in_documented_order(node, node_of_key)
        for inner_node in [node_of_key.child(inner.name)]
    ]
    return tuple(value for _, value in below) if node.is_array else dict(below)


def _in_documented_order(section: Section, node_of_key: KeyNode) -> list[Child]:
    """Return the children of a section in the order of the table, followed by user-defined names. node_of_key: declares
    the section."""
    order = {name: position for position, name in enumerate(node_of_key.key_nodes)}
    return sorted(section, key=lambda child: order.get(child.name.casefold(), len(order)))


def _masked_value(name: str, text: str | None, key: Key | None, variables: Mapping[str, str]) -> JsonValue:
    if text is None:
        return None
    if key is not None and key.secret:
        return _secret(name, text, key, variables)
    if _is_named_freely(key) and names_a_secret(name):
        return mask_whole(text)
    if key is not None and key.path.startswith("TestRunner:") and name.casefold() in _FREE_TEXTS:
        return mask_in_text(text, variables)
    resolved = mask_in_addresses(text, variables)
    is_guessed = key is None or (key.open and key.type is not KeyType.TEXT_MAP)
    return parse_value(resolved, None if is_guessed else key)


def _is_named_freely(key: Key | None) -> bool:
    """Return whether names under `key` are user-defined, so that the name decides whether a value is secret. key: None:
    no key is declared.

    This applies to headers and to user-defined sections. Maps of claims do not count: their names may sound secret, but
    their values are not.
    """
    return key is None or key.type is KeyType.OBJECT_MAP or key.path.endswith("Headers")


def _secret(name: str, text: str, key: Key, variables: Mapping[str, str]) -> JsonValue:
    if key.path in _SECRET_IN_PARTS:
        return text if _is_default(name, text, key) else mask_in_parts(text, variables)
    if key.type is KeyType.OBJECT_MAP and not names_a_secret(name):
        return mask_in_addresses(text, variables)
    return mask_whole(text)


def _is_default(name: str, text: str, key: Key) -> bool:
    return text == (key.default.get(name) if isinstance(key.default, Mapping) else key.default)


_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,39})(?:\.\d+)?", re.ASCII)
"""A number; longer ones stay text, as `int` refuses thousands of digits."""
_LITERALS = {"true": True, "false": False}


def parse_value(text: str, key: Key | None) -> JsonValue:
    """Convert a text to a JSON value of the type of its key: a text such as `8080` becomes a number for a key with
    numbers. Texts that do not have the form of the type stay texts. key: None: guess the type from the text."""
    if key is None or key.type in (KeyType.ANY, *_MAPS):
        return _guess_value(text) if key is None or key.type is not KeyType.TEXT_MAP else text
    if key.type is KeyType.BOOL:
        return BOOLEANS.get(text.strip().casefold(), text)
    return _number(text) if key.type in (KeyType.INT, KeyType.NUMBERS) else text


def _guess_value(text: str) -> JsonValue:
    return _LITERALS.get(text, _number(text))


def _number(text: str) -> JsonValue:
    """Convert to a number if this preserves the spelling; codes such as 08000 stay text."""
    if not _JSON_NUMBER.fullmatch(text):
        return text
    number = int(text) if text.lstrip("-").isdigit() else float(text)
    return number if str(number) == text else text
