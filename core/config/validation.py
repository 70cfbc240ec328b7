"""Unknown keys, and the known key that was probably meant (configuration-14, configuration-15)."""

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
"""Keys of earlier days by case-folded path: what they are called now, and a value to give (configuration-17)."""


@dataclass(frozen=True, slots=True)
class UnknownKey:
    path: str
    """In the user's own spelling, reported once at its highest unknown level."""
    origin: Origin
    suggestion: str | None
    """Full path of the nearest known key."""
    reason: str = ""
    """Why a key that is known elsewhere is not known here."""

    def __str__(self) -> str:
        meant = f" (did you mean {self.suggestion}?)" if self.suggestion else ""
        return f"{self.path} at {self.origin}{self.reason and f': {self.reason}'}{meant}"


_SUGGESTIONS = 50
"""Keys for which a near one is looked for, which takes milliseconds each: more of them are no typing errors."""


def unknown_keys(root: Section) -> tuple[UnknownKey, ...]:
    """Compare `root` with the table. Open maps and array elements are not inspected."""
    found = []
    for number, (key, node_of_key, known_path) in enumerate(_unknown(root, KEY_TREE, "", "")):
        is_near = number < _SUGGESTIONS and not key.reason
        near = _suggestion(key.path.rpartition(":")[2], key.path, node_of_key, known_path) if is_near else None
        found.append(replace(key, suggestion=near))
    return tuple(found)


_Found = tuple[UnknownKey, KeyNode, str]
"""With the room that does not know it, and the room's path."""


def _unknown(section: Section, node_of_key: KeyNode, path: str, known_path: str) -> Iterator[_Found]:
    kind = kind_of(section, node_of_key)
    for child in section:
        child_path = f"{path}:{child.name}" if path else child.name
        known = node_of_key.below(child.name)
        if known is None or not _may_be(known, child.node, node_of_key):
            yield UnknownKey(child_path, child.origin, None), node_of_key, known_path
        elif kind is not None and known.key is not None and known.key.only_for and kind not in known.key.only_for:
            reason = f"it belongs to {' and '.join(known.key.only_for)}, and the Type here is {kind}"
            yield UnknownKey(child_path, child.origin, None, reason), node_of_key, known_path
        elif isinstance(child.node, Section) and not known.open:
            name = child.name if known.is_wild else known.name
            below = f"{known_path}:{name}" if known_path else name
            yield from _unknown(child.node, known, child_path, below)


def kind_of(section: Section, node_of_key: KeyNode) -> str | None:
    """The entry's `Type`, which decides which keys it may have; None where it decides nothing, or is not given."""
    declared = node_of_key.key_nodes.get("type")
    node = section.get("Type")
    if not node_of_key.is_wild or declared is None or declared.key is None or not isinstance(node, Scalar):
        return None
    text = (node.text or "").casefold()
    return next((choice for choice in declared.key.choices if choice.casefold() == text), None)


def _may_be(known: KeyNode, node: Node, node_of_key: KeyNode) -> bool:
    """Beside keys of fixed names, a name of the user's own stands for a section: a single value is a misspelled key."""
    mixed = known.is_wild and len(node_of_key.key_nodes) > 1
    return not (mixed and isinstance(node, Scalar))


def _suggestion(name: str, path: str, node_of_key: KeyNode, known_path: str) -> str | None:
    """A name of the same section that looks alike, else the highest key with exactly this name in another section."""
    if path.casefold() in RENAMED:
        return RENAMED[path.casefold()][0]
    near = difflib.get_close_matches(name.casefold(), node_of_key.key_nodes, n=1, cutoff=0.7)
    if near:
        known = node_of_key.key_nodes[near[0]].name
        return f"{known_path}:{known}" if known_path else known
    elsewhere = [key.path for key in KEYS if key.path.rpartition(":")[2].casefold() == name.casefold()]
    depth = min((path.count(":") for path in elsewhere), default=0)
    highest = [path for path in elsewhere if path.count(":") == depth]
    return highest[0] if len(highest) == 1 else None
