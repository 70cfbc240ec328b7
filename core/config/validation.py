"""Find unknown keys, and suggest the key that was probably meant (configuration-14, configuration-15)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rowcall.core.config.table import KEY_TREE, KEYS, KeyNode
from rowcall.core.config.tree import Node, Origin, Scalar, Section

RENAMED = {
    "auth:cookievaliddays": ("Auth:CookieValid", "14 days"),
    "auth:bearertokenexpirehours": ("Auth:BearerTokenExpire", "1 hour"),
    "auth:jwtexpireminutes": ("Auth:JwtExpire", "60 minutes"),
    "auth:jwtrefreshexpiredays": ("Auth:JwtRefreshExpire", "7 days"),
}
"""Former keys by case-folded path, with their present name and an example value (configuration-17)."""


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key of the configuration that the table does not contain, or contains only for entries with another `Type`."""

    path: str
    """Path in the user's spelling; an unknown section is reported once, without the keys below it."""
    origin: Origin
    suggestion: str | None
    """Full path of the nearest known key; None: no known key is similar, or none was searched."""
    reason: str = ""
    """Why a key that exists elsewhere is unknown here; empty: it exists nowhere, or only in other sections."""

    def __str__(self) -> str:
        meant = f" (did you mean {self.suggestion}?)" if self.suggestion else ""
        return f"{self.path} at {self.origin}{self.reason and f': {self.reason}'}{meant}"


_SUGGESTIONS = 50
"""Maximum number of suggestions. Each takes milliseconds, and more unknown keys are not typing errors."""


def unknown_keys(root: Section) -> tuple[UnknownKey, ...]:
    """Return the keys in `root` that the table does not contain, or not for the `Type` of their entry, in sorted order.
    Open maps and array elements are not inspected."""
    result = []
    for number, (key, node_of_key, known_path) in enumerate(_unknown(root, KEY_TREE, "", "")):
        is_near = number < _SUGGESTIONS and not key.reason
        near = _suggestion(key.path.rpartition(":")[2], key.path, node_of_key, known_path) if is_near else None
        result.append(replace(key, suggestion=near))
    return tuple(result)


_Found = tuple[UnknownKey, KeyNode, str]
"""An unknown key, the key tree node in which it is missing, and the path of that node."""


def _unknown(section: Section, node_of_key: KeyNode, path: str, known_path: str) -> Iterator[_Found]:
    kind = kind_of(section, node_of_key)
    for child in section:
        child_path = f"{path}:{child.name}" if path else child.name
        known_node = node_of_key.child(child.name)
        if known_node is None or not _may_be(known_node, child.node, node_of_key):
            yield UnknownKey(child_path, child.origin, None), node_of_key, known_path
        elif (
            kind is not None
            and known_node.key is not None
            and known_node.key.only_for
            and kind not in known_node.key.only_for
        ):
            reason = f"it belongs to {' and '.join(known_node.key.only_for)}, and the Type here is {kind}"
            yield UnknownKey(child_path, child.origin, None, reason), node_of_key, known_path
        elif isinstance(child.node, Section) and not known_node.is_open:
            name = child.name if known_node.is_wild else known_node.name
            below = f"{known_path}:{name}" if known_path else name
            yield from _unknown(child.node, known_node, child_path, below)


def kind_of(section: Section, node_of_key: KeyNode) -> str | None:
    """Return the `Type` of a user-defined entry in canonical spelling, which decides which keys are valid; None if it
    is missing, unknown or decides nothing. node_of_key: the key tree node that declares the entry."""
    declared = node_of_key.key_nodes.get("type")
    node = section.get("Type")
    if not node_of_key.is_wild or declared is None or declared.key is None or not isinstance(node, Scalar):
        return None
    text = (node.text or "").casefold()
    return next((choice for choice in declared.key.choices if choice.casefold() == text), None)


def _may_be(declared: KeyNode, node: Node, node_of_key: KeyNode) -> bool:
    """Return whether `node` can be a value of the key tree node `declared`, which is below `node_of_key`.

    False only for a single value whose name matches no fixed key of a section that has fixed keys and user-defined
    sections: its name is probably a misspelt key.
    """
    mixed = declared.is_wild and len(node_of_key.key_nodes) > 1
    return not (mixed and isinstance(node, Scalar))


def _suggestion(name: str, path: str, node_of_key: KeyNode, known_path: str) -> str | None:
    """Return the path that was probably meant by an unknown key, or None.

    This is the present name of a renamed key, else a similar name in the same section, else the key with the same name
    in another section whose path has the fewest names, unless several have as few. name, path: of the unknown key.
    node_of_key, known_path: the key tree node in which it is missing, and the path of that node.
    """
    if path.casefold() in RENAMED:
        return RENAMED[path.casefold()][0]
    similar = difflib.get_close_matches(name.casefold(), node_of_key.key_nodes, n=1, cutoff=0.7)
    if similar:
        spelling = node_of_key.key_nodes[similar[0]].name
        return f"{known_path}:{spelling}" if known_path else spelling
    elsewhere = [key.path for key in KEYS if key.path.rpartition(":")[2].casefold() == name.casefold()]
    depth = min((path.count(":") for path in elsewhere), default=0)
    highest = [path for path in elsewhere if path.count(":") == depth]
    return highest[0] if len(highest) == 1 else None
