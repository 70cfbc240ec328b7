"""The query language of an endpoint: the columns of its result and the query parameters that requests may use,
determined once for each endpoint."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.capabilities import Queryable
from rowcall.core.endpoint.endpoint import Endpoint, ResultColumn, ResultPath
from rowcall.core.errors.binding_error import BindingError, Fault, quote_value
from rowcall.core.postgrest.schema import Column, Relation
from rowcall.core.sqlfile.source import FileSource
from rowcall.core.tables.routines import TableOperation

SELECT, ORDER, LIMIT, OFFSET, AFTER, BEFORE = "select", "order", "limit", "offset", "after", "before"
RESERVED = frozenset((SELECT, ORDER, LIMIT, OFFSET, AFTER, BEFORE, "and", "or"))
"""Keys of a query string that name no column."""

MOST_ROWS = 1000
"""Largest number of rows of a page, unless configuration or comment set another number."""

MOST_LISTED = 12
"""Number of names that a message about an unknown name lists."""

SOURCE = "q"
"""Name of the routine's result in the SQL of a query."""

_BASE_TYPES = {114: "json", 3802: "jsonb", 3614: "tsvector"}
"""Base types for which the SQL of a condition differs."""
_READS = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*+(?:select|values|table|with)\b", re.IGNORECASE | re.DOTALL)
_WRITES = re.compile(r"\b(?:insert|update|delete|merge)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QueryColumn:
    """A column of the result of an endpoint, as requests can use it.

    key: its name in responses and queries. name: in the database. type_oid: 0: unknown. columns: the columns of the
    statement: several, if the column is a composite that an SQL file returns expanded into its attributes.
    """

    key: str
    name: str
    type_oid: int
    columns: tuple[ResultColumn, ...]
    type_name: str
    comparable: bool = True
    """False: the values in the database are encrypted, or are not those of the response."""


@dataclass(frozen=True, slots=True)
class Language:
    """The query language of one endpoint.

    relation: the result, for the renderer of conditions. unique: keys of the columns that identify a row; empty:
    unknown. not_null: keys of columns without NULL. default_rows, most_rows: of a page.
    """

    endpoint: Endpoint
    abilities: Queryable
    columns: tuple[QueryColumn, ...]
    relation: Relation
    unique: tuple[str, ...]
    not_null: frozenset[str]
    own: frozenset[str]
    """Names of the endpoint's own parameters, which are no part of the query."""
    default_rows: int
    most_rows: int

    def column(self, name: str) -> QueryColumn | None:
        """Return the column with this key in responses, or with this name in the database; None: there is none."""
        by_key = next((column for column in self.columns if column.key == name), None)
        return by_key or next((column for column in self.columns if column.name == name), None)

    def suggestion(self, name: str, others: Iterable[str] = ()) -> str:
        """Return the end of a message about an unknown name: a similar valid name, or else a list of valid names.
        others: valid names besides those of columns."""
        names = [*(column.key for column in self.columns if column.comparable), *others]
        near = difflib.get_close_matches(name[:60], names, n=1)
        if near:
            return f"; did you mean {near[0]!r}?"
        return f"; there are {', '.join(names[:MOST_LISTED])}{' …' if len(names) > MOST_LISTED else ''}"

    def unknown(self, key: str, message: str) -> BindingError:
        """Return the error for a parameter that does not exist or names something unknown. key: the parameter."""
        fault = Fault(key[:100], key[:100], message, invalid_value=False)
        return self.endpoint.refusals.error([fault], in_json=False)

    def invalid(self, key: str, reason: str) -> BindingError:
        """Return the error of status 400 for a value that cannot be used. key: the parameter. reason: the rest of the
        message, behind the name of the parameter."""
        fault = Fault(key[:100], key[:100], f"parameter {quote_value(key)}: {reason}")
        return BindingError.of(400, [fault], fault)


def language_of(endpoint: Endpoint) -> Language | None:
    """Return the query language of an endpoint; None: its result cannot be queried."""
    abilities = endpoint.options.queryable
    if abilities is None or not abilities.enabled or obstacle(endpoint) is not None:
        return None
    columns = tuple(_columns(endpoint))
    most = abilities.most or MOST_ROWS
    described = (Column(item.key, item.type_name, _BASE_TYPES.get(item.type_oid, "")) for item in columns)
    return Language(
        endpoint,
        abilities,
        columns,
        Relation("", SOURCE, tuple(described)),
        unique=_unique(endpoint, columns),
        not_null=frozenset(column.key for column in columns if column.name in _primary_key(endpoint)),
        own=_parameter_names(endpoint),
        default_rows=min(abilities.rows or most, most),
        most_rows=most,
    )


def _parameter_names(endpoint: Endpoint) -> frozenset[str]:
    """Return the names of the endpoint's parameters in a query string."""
    if endpoint.transport is Transport.BODY:
        return frozenset()
    parameters = [parameter for parameter in endpoint.parameters if not parameter.path]
    groups = (parameter.group for parameter in parameters if parameter.group is not None)
    return frozenset((*(parameter.api_name for parameter in parameters), *groups))


def obstacle(endpoint: Endpoint) -> str | None:
    """Return why the result of an endpoint cannot be queried, as the end of a sentence; None if it can."""
    shape, options, source = endpoint.shape, endpoint.options, endpoint.routine.source
    if shape.path is not ResultPath.ROWS or not shape.is_set or not shape.named or not shape.columns:
        return "only results of rows with named columns can be queried"
    if options.single:
        return "single returns one row"
    if options.login or options.logout or options.upload is not None:
        return "sign-in, sign-out and uploads are not queried"
    if endpoint.passes_through or options.proxy_out is not None:
        return "another service gives the response"
    if endpoint.sets_response:
        return "SQL sets status or headers of the response"
    if endpoint.routine.kind is RoutineKind.PROCEDURE:
        return "procedures cannot be part of a query"
    if isinstance(source, TableOperation) and source.writes:
        return "it changes the table"
    if isinstance(source, FileSource) and not only_reads(source.statements[0].text):
        return "only a file that is one SELECT can be queried"
    keys = [column.key for column in shape.columns]
    if len(set(keys)) < len(keys):
        return "two columns of its result have the same name"
    return None


def only_reads(text: str) -> bool:
    """Return whether the SQL of a statement is a query that contains no word of a write, such as `update`."""
    return _READS.match(text) is not None and _WRITES.search(text) is None


def _columns(endpoint: Endpoint) -> Iterator[QueryColumn]:
    """Yield the columns of the result. The attributes into which an SQL file expands a composite column count as one
    column."""
    type_oids = endpoint.shape.type_oids or ()
    encryption = endpoint.options.encryption
    encrypted = frozenset[str]()
    if encryption is not None:
        encrypted = frozenset(name.casefold() for name in encryption.columns)
    number = 0
    for position, neighbours in groupby(endpoint.shape.columns, key=lambda column: column.position):
        group = tuple(neighbours)
        for columns in [group] if position is not None else [(column,) for column in group]:
            first = columns[0]
            whole = first.group if position is not None and first.group is not None else first.column
            key = whole.name if position is not None else first.key.decode()
            secret = encryption is not None and (encryption.all_columns or not first.names.isdisjoint(encrypted))
            yield QueryColumn(
                key,
                whole.name,
                type_oids[number] if number < len(type_oids) else 0,
                columns,
                whole.type_name,
                comparable=not secret,
            )
            number += 1


def _primary_key(endpoint: Endpoint) -> tuple[str, ...]:
    source = endpoint.routine.source
    return source.table.key if isinstance(source, TableOperation) else ()


def unique_columns(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the keys of the columns that identify a row; empty if they are unknown."""
    return _unique(endpoint, tuple(_columns(endpoint)))


def _unique(endpoint: Endpoint, columns: tuple[QueryColumn, ...]) -> tuple[str, ...]:
    """Return the keys of the columns that the annotation names (`queryable … by`), or else of the primary key; empty:
    there are none, or one of them is encrypted or not in the result."""
    abilities = endpoint.options.queryable
    names = (abilities.unique if abilities is not None else ()) or _primary_key(endpoint)
    matches = [_find_column(name, columns) for name in names]
    return tuple(column.key for column in matches if column is not None) if all(matches) else ()


def _find_column(name: str, columns: tuple[QueryColumn, ...]) -> QueryColumn | None:
    """Return the comparable column with this name in responses or in the database, in any case; None: there is none."""
    folded = name.casefold()
    candidates = (column for column in columns if column.comparable)
    return next((item for item in candidates if folded in (item.key.casefold(), item.name.casefold())), None)


def unknown_unique(endpoint: Endpoint) -> str | None:
    """Return the first word behind `by` of the annotation `queryable` that names no column of the result, or an
    encrypted one; None: there is no such word."""
    abilities = endpoint.options.queryable
    columns = tuple(_columns(endpoint))
    names = () if abilities is None else abilities.unique
    return next((name for name in names if _find_column(name, columns) is None), None)
