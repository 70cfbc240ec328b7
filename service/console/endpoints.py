"""Endpoints of the active schema snapshot: a page of the list, and one endpoint in detail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from rowcall.core.auth.antiforgery import AntiforgeryOptions
from rowcall.core.building.description import describe_endpoint
from rowcall.core.documents.http_files import example_request
from rowcall.core.documents.options import HttpFileOptions
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.events.stream_path import stream_path
from rowcall.service.console.query import whole
from rowcall.service.console.sources import Sources
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot

_PAGE = 100
_MOST = 1000
_SAFE = ("GET", "HEAD", "OPTIONS", "QUERY")
"""Methods whose requests need no antiforgery token."""
_GROUPINGS = ("", "schema", "tag")

Traffic = Mapping[tuple[str, str], dict[str, Any]]


class Counts(Protocol):
    """Numbers of requests of endpoints, by method and path: `traffic` since the start, `last_hour` of at most the last
    hour, with the seconds that it covers.
    """

    def traffic(self) -> Traffic: ...

    def last_hour(self) -> tuple[float, Traffic]: ...


class Definitions(Protocol):
    """Reads the SQL of routines."""

    def definition(self, oid: int, source: str | None) -> str | None: ...


def endpoints(snapshot: SchemaSnapshot, counts: Counts, query: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of the endpoints, in the order of their paths. Raises `Problem` 400 for an invalid `offset`,
    `limit` or `group`.

    query: with `search`, only endpoints whose method, path, routine or comment contain all its words; with `schema`,
    only those of the schema; with `group` (schema, tag), in the order of groups, each with its number of endpoints. An
    endpoint with several tags is in the group of each tag.
    """
    offset = whole(query, "offset", 0, 10_000_000)
    limit = whole(query, "limit", _PAGE, _MOST)
    words = query.get("search", "").casefold().split()
    schema, grouping = query.get("schema", ""), query.get("group", "")
    if grouping not in _GROUPINGS:
        raise Problem(400, f"group: {grouping[:50]!r} is none of schema, tag")
    found = [
        item for item in snapshot.endpoints if (not schema or item.routine.schema == schema) and _matches(item, words)
    ]
    traffic, (seconds, last_hour) = counts.traffic(), counts.last_hour()
    located = [(group, item) for item in found for group in _groups(item, grouping)]
    located.sort(key=lambda entry: (entry[0], entry[1].path, entry[1].method))
    return {
        "total": len(located),
        "offset": offset,
        "groups": [{"name": name, "count": count} for name, count in Counter(group for group, _ in located).items()],
        "endpoints": [_summary(item, traffic, last_hour) for _, item in located[offset : offset + limit]],
        "lastHourSeconds": seconds,
        "schemas": sorted({item.routine.schema for item in snapshot.endpoints}),
        "leftOut": [str(reason) for reason in snapshot.left_out],
    }


def endpoint(sources: Sources, counts: Counts, query: Mapping[str, str], definitions: Definitions) -> dict[str, Any]:
    """Return the details of the endpoint with the `method` and `path` of the query. Raises `Problem` 404 if there is
    none.
    """
    snapshot, options = sources.snapshot(), sources.options
    found = named_endpoint(snapshot, query)
    item = found[0]
    seconds, last_hour = counts.last_hour()
    return {
        **_summary(item, counts.traffic(), last_hour),
        "lastHourSeconds": seconds,
        "comment": item.routine.comment,
        "annotations": list(item.annotations),
        "sql": _sql(item, definitions),
        "conditions": list(item.access.conditions),
        "description": describe_endpoint(item),
        "example": _example(item, sources),
        "stream": stream_path(item, options.events.level),
        "signIn": [{"method": other.method, "path": other.path} for other in snapshot.endpoints if other.options.login],
        "antiforgery": _antiforgery(item, options.antiforgery),
        "apiKeyHeader": None if options.auth.api_keys is None else options.auth.api_keys.header,
        "overloads": [other.routine.identity for other in found[1:]],
    }


def _sql(item: Endpoint, definitions: Definitions) -> str | None:
    """Return the SQL of the routine; None for files and tables, and if it cannot be read."""
    routine = item.routine
    return None if routine.source is not None else definitions.definition(routine.oid, item.catalogue_connection)


def named_endpoint(snapshot: SchemaSnapshot, query: Mapping[str, str]) -> list[Endpoint]:
    """Return the endpoint with this `method` and `path`, and its overloads, at least one. Raises `Problem` 404 if there
    is none.
    """
    method, path = query.get("method", "GET"), query.get("path", "")
    found = [item for item in snapshot.endpoints if (item.method, item.path) == (method, path)]
    if not found:
        raise Problem(404, f"there is no endpoint {method[:20]} {path[:200]}; /console/api/endpoints lists them")
    return found


def _example(item: Endpoint, sources: Sources) -> str:
    """Return an example request as text, with the address of the service."""
    host = next(iter(sources.urls()), "")
    options = HttpFileOptions(host, claims=sources.options.auth.login)
    return example_request(item, options).replace("{{host}}", host, 1)


def _antiforgery(item: Endpoint, options: AntiforgeryOptions | None) -> dict[str, Any] | None:
    """Return None if requests of the endpoint need no antiforgery token. Otherwise return the members `header`, in
    which the token is sent, and `path`, which issues tokens (None: no path does)."""
    if options is None or not options.enforced or item.method in _SAFE:
        return None
    return {"header": options.header, "path": options.token_path}


def _groups(item: Endpoint, by: str) -> tuple[str, ...]:
    """Return the names of the groups that contain the endpoint; without grouping, one empty name. by: schema or tag;
    empty: no grouping.
    """
    if by == "schema":
        return (item.routine.schema,)
    document = item.options.document
    tags = () if document is None else document.tags
    return (tags or ("",)) if by == "tag" else ("",)


def _matches(item: Endpoint, words: list[str]) -> bool:
    if not words:
        return True
    text = f"{item.method} {item.path} {item.routine.identity} {item.routine.comment or ''}".casefold()
    return all(word in text for word in words)


def _summary(item: Endpoint, traffic: Traffic, last_hour: Traffic) -> dict[str, Any]:
    return {
        "method": item.method,
        "path": item.path,
        "routine": item.routine.identity,
        "schema": item.routine.schema,
        "access": item.access.audience,
        "authentication": item.access.scheme,
        "internal": item.options.internal,
        "traffic": traffic.get((item.method, item.path)),
        "lastHour": last_hour.get((item.method, item.path)),
    }
