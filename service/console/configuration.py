"""The effective configuration as a list of keys with their sources; secrets are masked as in `rowcall --config`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rowcall.core.config import Settings
from rowcall.core.config.output.effective import Entry, effective
from rowcall.core.config.tree import Node, Scalar, find


def configuration(settings: Settings, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys that contain the text `search` of the query in their path, meaning or value; with `changed=true`
    only those that are configured.
    """
    word = query.get("search", "").casefold()
    changed = query.get("changed") == "true"
    keys = list(_keys(effective(settings), "", settings))
    return {"keys": [key for key in keys if word in _text(key) and (key["source"] is not None or not changed)]}


def _keys(entries: Iterable[Entry], above: str, settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield path, value, source and meaning of each key. above: path of the section, with a colon; empty: none."""
    for entry in entries:
        path = f"{above}{entry.name}"
        if entry.entries:
            yield from _keys(entry.entries, f"{path}:", settings)
        elif entry.entries is None:
            source = _source(find(settings.root, path))
            yield {"key": path, "value": entry.value, "source": source, "meaning": entry.comment}


def _source(node: Node | None) -> str | None:
    """Return where the value was written; for a section, where its first value was written; None for a default."""
    if node is None:
        return None
    if isinstance(node, Scalar):
        return str(node.origin)
    return next((str(child.origin) for child in node), None)


def _text(key: Mapping[str, Any]) -> str:
    return f"{key['key']} {key['meaning']} {key['value']}".casefold()
