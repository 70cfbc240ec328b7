"""Records of the supervisor: changes of the last schema snapshots, and the last log entries."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rowcall.core.building.service import ServiceOptions
from rowcall.core.catalogue.catalog import TypeInfo
from rowcall.core.documents.contract import Contract, contract_of
from rowcall.core.documents.contract_changes import changes
from rowcall.core.documents.wire_types import as_wire_types
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.service.console.query import whole
from rowcall.service.console.sources import Sources
from rowcall.service.log.entry import LEVELS, VERBOSE, Entry, level_name
from rowcall.service.log.recent import RecentEntries
from rowcall.service.options.tables import export_options, table_formats
from rowcall.service.snapshot.schema_snapshot import Difference, SchemaSnapshot, endpoints_by_name

_RELOADS = 50
_NAMES = 500
"""Most endpoints of a reload that are listed."""
_ENTRIES = 500


class _Side(NamedTuple):
    """The endpoints before or after a reload, with the types of their databases by oid. types: of the main database.
    other_types: of the others, by case-folded name of the connection.
    """

    endpoints: Sequence[Endpoint]
    types: Mapping[int, TypeInfo]
    other_types: Mapping[str, Mapping[int, TypeInfo]]

    @classmethod
    def of(cls, snapshot: SchemaSnapshot, names: set[str]) -> _Side:
        """Return the endpoints of a snapshot with these names."""
        found = [item for items in endpoints_by_name(snapshot, names).values() for item in items]
        return cls(found, snapshot.types, snapshot.other_types)


class _Reload(NamedTuple):
    """One reload of the schema. described: its members in the report; `contract` is added when it is first computed.
    before, after: endpoints from which the changes of the contract are computed."""

    described: dict[str, Any]
    before: _Side
    after: _Side


class Reloads:
    """The last reloads of the schema. Their changes of the contract with clients are computed on request."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._reloads: deque[_Reload] = deque(maxlen=_RELOADS)

    def add(self, before: SchemaSnapshot, after: SchemaSnapshot, difference: Difference) -> None:
        """Store a reload; if there are too many, the oldest one is dropped. difference: the names of the endpoints that
        have changed.
        """
        listed = (difference.added[:_NAMES], difference.changed[:_NAMES], difference.removed[:_NAMES])
        names = {name for part in listed for name in part}
        described = {
            "snapshot": after.number,
            "time": time.time(),
            "counts": {
                "added": len(difference.added),
                "changed": len(difference.changed),
                "removed": len(difference.removed),
            },
            "added": listed[0],
            "changed": listed[1],
            "removed": listed[2],
        }
        self._reloads.appendleft(_Reload(described, _Side.of(before, names), _Side.of(after, names)))

    def report(self) -> dict[str, Any]:
        """Return the last reloads, newest first, each with its changes of the contract, and the objects that the active
        snapshot leaves out.
        """
        snapshot = self._sources.snapshot()
        return {
            "snapshot": snapshot.number,
            "endpoints": len(snapshot.endpoints),
            "leftOut": [str(reason) for reason in snapshot.left_out],
            "reloads": [self._with_contract(reload) for reload in tuple(self._reloads)],
        }

    def _with_contract(self, reload: _Reload) -> dict[str, Any]:
        """Return the members of a reload, with its changes of the contract with clients, the most severe first. They
        are computed at the first call."""
        if "contract" not in reload.described:
            found = changes(self._contract(reload.before), self._contract(reload.after))
            reload.described["contract"] = [
                {"severity": change.severity.name.lower(), "endpoint": change.endpoint, "change": change.text}
                for change in found[:_NAMES]
            ]
        return reload.described

    def _contract(self, side: _Side) -> Contract:
        settings, options = self._sources.settings, self._sources.options
        endpoints, types_of = as_wire_types(
            side.endpoints,
            lambda item: side.other_types.get((item.options.connection or "").casefold(), side.types),
            safe_numbers=options.safe_numbers,
            resolve_nested=options.resolve_nested,
        )
        return contract_of(
            endpoints,
            types_of,
            camel=settings.read(ServiceOptions).camel_case_names,
            level=settings.read(ServiceOptions).event_level,
            tables=table_formats(settings),
            exports=export_options(settings),
            exact=settings.read(ServiceOptions).exact_types,
            functions={},
        )


def log_entries(entries: RecentEntries, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the last entries, oldest first, and the number of the newest one. Raises `Problem` 400 for an unknown
    level or an invalid number.

    query: `level` (the lowest), `channel`, `search` (a text that they contain), `after` (only entries with a larger
    number), `limit`.
    """
    level = _level(query.get("level", "Verbose"))
    limit = whole(query, "limit", _ENTRIES, 2000)
    word = query.get("search", "").casefold()
    channel = query.get("channel", "")
    after = whole(query, "after", 0, 10**11)
    newer = entries.entries_after(after)
    found = [
        {
            "number": number,
            "time": entry.time,
            "level": level_name(entry.level),
            "channel": entry.source,
            "message": entry.message,
            "exception": entry.exception,
            "properties": dict(entry.properties),
        }
        for number, entry in newer
        if entry.level >= level and (not channel or entry.source == channel) and word in _text(entry)
    ]
    return {"last": newer[-1][0] if newer else after, "entries": found[-limit:] if limit else []}


def _text(entry: Entry) -> str:
    properties = "\n".join(str(value) for value in entry.properties.values())
    return f"{entry.message}\n{entry.exception or ''}\n{properties}".casefold()


def _level(name: str) -> int:
    level = LEVELS.get(name.casefold(), VERBOSE if not name else None)
    if level is None:
        raise Problem(400, f"level: {name[:50]!r} is none of Verbose, Debug, Information, Warning, Error, Fatal")
    return level
