"""Build the file that `rowcall --init` writes: the few keys that most services set, each with its meaning."""

from __future__ import annotations

from rowcall.core.config.output.effective import Entry, meaning_of
from rowcall.core.config.output.printing import format_entries
from rowcall.core.config.table import key_at

_HEAD = """\
// Configuration of rowcall. Every key, its default and its meaning: rowcall --config
// {!NAME:text} is the environment variable NAME, or text where it is not set.
"""

_CHOSEN = (
    "Urls",
    "Config:EnvFile",
    "Config:ValidateConfigKeys",
    "ConnectionStrings",
    "HttpServer:Workers",
    "Log:MinimalLevels",
    "Service:CommentsMode",
    "Service:IncludeSchemas",
    "Service:UrlPathPrefix",
    "Service:RequiresAuthorization",
)


def starter() -> str:
    """Return the content of a configuration file to start with. Each key has its default, so that loading the file
    changes nothing."""
    sections: dict[str, list[Entry]] = {}
    for path in _CHOSEN:
        top, _, name = path.partition(":")
        key = key_at(path)
        sections.setdefault(top, []).append(Entry(name or top, meaning_of(key), key.default))
    return _HEAD + format_entries(_top(top, entries) for top, entries in sections.items())


def _top(name: str, entries: list[Entry]) -> Entry:
    if [entry.name for entry in entries] == [name]:
        return entries[0]
    return Entry(name, meaning_of(key_at(name)), entries=tuple(entries))
