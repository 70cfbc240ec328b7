"""Collect the secret values of the configuration, for checks that nothing publishes them. They must not be output."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.core.config import Settings
from rowcall.core.config.output.masking import names_a_secret, passwords_of
from rowcall.core.config.placeholders import resolve_what_is_set
from rowcall.core.config.table import KEY_TREE, KeyNode
from rowcall.core.config.tree import leaves
from rowcall.core.sections.keys import Key, KeyType

_IN_PARTS = {"ConnectionStrings", "CacheOptions:RedisConfiguration"}


def secret_values(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the path of each setting that `rowcall --config` masks, whole or in part, with each resolved secret value
    in it. Commands and SQL of the test runner are searched only if they contain an address."""
    for path, scalar in leaves(settings.root):
        if scalar.text:
            text = resolve_what_is_set(scalar.text, settings.variables)
            yield from ((path, value) for value in _values(path, text) if value)


def _values(path: str, text: str) -> Iterator[str]:
    key = _key(path)
    if key is not None and key.path in _IN_PARTS:
        yield from passwords_of(text)
    elif _is_secret(key, path.rpartition(":")[2]):
        yield text
    elif "://" in text:
        yield from passwords_of(text)


def _is_secret(key: Key | None, name: str) -> bool:
    """Return whether a value is masked as a whole. key: of the value, or of its map; None: no key is declared."""
    if key is None or key.type is KeyType.OBJECT_MAP:
        return names_a_secret(name)
    return key.secret or (key.path.endswith("Headers") and names_a_secret(name))


def _key(path: str) -> Key | None:
    """Return the key of the value at `path`: its own, or that of the map or list that contains it. None: no key is
    declared."""
    node_of_key: KeyNode | None = KEY_TREE
    key: Key | None = None
    for name in path.split(":"):
        node_of_key = None if node_of_key is None else node_of_key.child(name)
        if node_of_key is None:
            break
        key = node_of_key.key or key
    return key
