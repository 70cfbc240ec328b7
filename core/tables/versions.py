"""Optimistic locking: the version of a row as entity tag, and conditions of requests on it (RFC 9110, 8.8.3 and 13.1).

The version is a column. Reading sends it as a strong `ETag`; writing needs an `If-Match` with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote, unquote

import orjson

from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultPath, ValueKind
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.tables.operations import Command
from rowcall.core.tables.routines import TableOperation
from rowcall.core.text import exact_json

IF_MATCH = "If-Match"
IF_NONE_MATCH = "If-None-Match"
_TAG = re.compile(r'\s*(W/)?"([^"]*)"\s*(?:,|$)')
_SAFE = "!#$&'()*+,-./:;<=>?@[]^_`{|}~ "
READING = frozenset(("GET", "HEAD", "QUERY"))


def versions_of(header: str) -> tuple[str, ...] | None:
    """Return the versions in `If-Match`, percent-decoded; None for `*`, which any existing row fulfils. Weak tags match
    no version (RFC 9110, 13.1.1), and are left out.

    Raises ValueError if the header is not a list of entity tags.
    """
    tags = _tags_of(header)
    return None if tags is None else tuple(version for weak, version in tags if not weak)


def excluded_versions(header: str) -> tuple[str, ...] | None:
    """Return the versions in `If-None-Match`, percent-decoded; None for `*`, which excludes any existing row. Weak tags
    count like others (RFC 9110, 13.1.2).

    Raises ValueError if the header is not a list of entity tags.
    """
    tags = _tags_of(header)
    return None if tags is None else tuple(version for _, version in tags)


def _tags_of(header: str) -> list[tuple[bool, str]] | None:
    """Return the entity tags of a header: whether each is weak, and its version; None for `*`. Raises ValueError."""
    if header.strip() == "*":
        return None
    tags: list[tuple[bool, str]] = []
    place = 0
    while place < len(header):
        match = _TAG.match(header, place)
        if match is None:
            raise ValueError("it is no list of entity tags")
        tags.append((match[1] is not None, unquote(match[2])))
        place = match.end()
    return tags


def entity_tag(body: bytes, key: str) -> str | None:
    """Return the entity tag of a row, in quotes and percent-encoded; None: the row has no version. body: the row as
    JSON, or an array with this row only. key: member of the row with the version."""
    try:
        # Other parsers round numbers beyond double precision, so that two versions would have one tag.
        row = exact_json.parse(body, written=False)
    except ValueError:
        return None
    if isinstance(row, list) and len(row) == 1:
        row = row[0]
    value = row.get(key) if isinstance(row, dict) else None
    if value is None:
        return None
    try:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
    except TypeError:  # it has more levels than orjson writes
        return None
    return f'"{quote(text, safe=_SAFE)}"'


def with_version_parameter(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with a parameter that `If-Match` fills, or `If-None-Match` for an insert into a table. For a
    table, this is a new parameter; for a routine, the parameter with the name of the version column.

    The endpoint is returned unchanged if it has no version column, has the method GET, HEAD or QUERY, lacks such a
    column or parameter, or inserts into a table without a key by which conflicts are found.
    """
    name = endpoint.options.version_column
    if name is None or endpoint.method in READING:
        return endpoint
    source = endpoint.routine.source
    if isinstance(source, TableOperation):
        if source.operation.command is Command.SELECT:
            return endpoint
        column = next((column for column in source.table.columns if column.name.lower() == name.lower()), None)
        if column is None or (is_insert(endpoint) and not source.table.finds_conflicts):
            return endpoint
        parameter = EndpointParameter(
            db_name="",
            api_name=IF_NONE_MATCH if is_insert(endpoint) else IF_MATCH,
            kind=ValueKind.OTHER,
            array=not is_insert(endpoint),
            cast="boolean" if is_insert(endpoint) else f"{column.type_name}[]",
            has_default=True,
            position=-1,
            of_query=True,
        )
        parameters = (*endpoint.parameters, parameter)
        return replace(endpoint, parameters=parameters, version_index=len(parameters) - 1)
    index = _parameter(endpoint, name)
    if index is None:
        return endpoint
    parameters = tuple(
        replace(item, ignored=True, has_default=True) if place == index else item
        for place, item in enumerate(endpoint.parameters)
    )
    return replace(endpoint, parameters=parameters, version_index=index)


def _parameter(endpoint: Endpoint, name: str) -> int | None:
    """Return the index of the parameter of a routine with the name of the version column, with or without `_` in front,
    in any case; None: there is none."""
    names = (name.lower(), f"_{name.lower()}")
    for index, parameter in enumerate(endpoint.parameters):
        if parameter.db_name.lower() in names or parameter.api_name.lower() == name.lower():
            return index
    return None


def version_parameter_index(endpoint: Endpoint) -> int | None:
    """Return the index of the parameter with which a request could write the version of a table's row; None: there is
    none.

    Such a value is not used, so that a row can be sent back as it was read.
    """
    name = (endpoint.options.version_column or "").lower()
    if not isinstance(endpoint.routine.source, TableOperation):
        return None
    return next((index for index, item in enumerate(endpoint.parameters) if item.db_name.lower() == name), None)


def version_key(endpoint: Endpoint) -> str | None:
    """Return the key of the version in a response with one row; None: the response has no version."""
    name, shape = endpoint.options.version_column, endpoint.shape
    if name is None or shape.path is not ResultPath.ROWS or not shape.named or endpoint.options.raw:
        return None
    if shape.is_set and not endpoint.options.single and not _is_write(endpoint):
        return None
    return next((column.key.decode() for column in shape.columns if name.casefold() in column.names), None)


def _is_write(endpoint: Endpoint) -> bool:
    """Return whether the endpoint is a table operation that writes. Its response is an array, usually of one row."""
    source = endpoint.routine.source
    return isinstance(source, TableOperation) and source.writes


def version_diagnostics(endpoint: Endpoint, used: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Report `version_column` lines without effect. If the endpoint would write unchecked, it is left out.

    used: line of each applied annotation, by its name.
    """
    name, line = endpoint.options.version_column, used.get("version_column")
    if name is None:
        return
    identity, source = endpoint.routine.identity, endpoint.routine.source
    if endpoint.method in READING:
        if version_key(endpoint) is None and not isinstance(source, TableOperation):
            reason = "only a JSON row has a version: add single, and return the column"
            yield Diagnostic(identity, line, f"{endpoint.name}: version_column {name} has no effect: {reason}")
    elif endpoint.version_index is None and not is_insert(endpoint):
        what = "column" if isinstance(source, TableOperation) else "parameter"
        message = f"version_column: there is no {what} {name}, which If-Match could fill; the endpoint is left out"
        yield Diagnostic(identity, line, f"{endpoint.name}: {message}", left_out=1)


def is_insert(endpoint: Endpoint) -> bool:
    """Return whether the endpoint inserts a row into a table."""
    source = endpoint.routine.source
    return isinstance(source, TableOperation) and source.operation.command is Command.INSERT


def array_of(versions: Sequence[str]) -> bytes:
    """Return the PostgreSQL array literal of these texts, in UTF-8."""
    quoted = (version.replace("\\", "\\\\").replace('"', '\\"') for version in versions)
    return ("{" + ",".join(f'"{version}"' for version in quoted) + "}").encode()
