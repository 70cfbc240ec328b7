"""A query string as a `Query`.

Source: PostgREST's documentation, URL Grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar
from urllib.parse import quote, unquote_plus

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.request import grammar
from rowcall.core.postgrest.request.tree import (
    Condition,
    Field,
    LogicNode,
    OrderTerm,
    Path,
    Query,
    Range,
    SelectColumn,
)

_UNRESERVED = "-_.~"
_IS_UNRESERVED = re.compile(r"[A-Za-z0-9_.~-]*").fullmatch
Part = TypeVar("Part")
_OPERATOR_STARTS = tuple(
    operator + end
    for operator in (*grammar.QUANTIFIED, *grammar.SIMPLE, *grammar.FULL_TEXT, "in", "is", "isdistinct")
    for end in (".", "(")
)


def parameters(query: str) -> list[tuple[str, str | None]]:
    """Return the decoded keys and values of a query string, which is split at `&` and `;`. The value of a part without
    `=` is None."""
    result: list[tuple[str, str | None]] = []
    for part in query.replace(";", "&").split("&"):
        key, equals, value = part.partition("=")
        if part:
            result.append((percent_decode(key), percent_decode(value) if equals else None))
    return result


def percent_decode(text: str) -> str:
    """Decode percent-encoding, and `+` as a blank."""
    return unquote_plus(text, errors="replace") if "%" in text or "+" in text else text


def parse_query(query: str, *, function_arguments: bool = False) -> Query:
    """Parse a query string. function_arguments: a value without operator is an argument and not an error.

    Raises `ApiError`: `PGRST103` for a negative limit, `PGRST100` for any other error.
    """
    pairs = parameters(query)
    selects: list[str] = []
    columns: list[str] = []
    conflicts: list[str] = []
    orders: list[tuple[str, str]] = []
    trees: list[tuple[str, str]] = []
    comparisons: list[tuple[str, str]] = []
    limits: dict[Path, int] = {}
    offsets: dict[Path, int] = {}
    for key, value in pairs:
        last = key.rpartition(".")[2]
        if value is None:
            continue
        if key == "select":
            selects.append(value)
        elif key == "columns":
            columns.append(value)
        elif key == "on_conflict":
            conflicts.append(value)
        elif last == "order":
            orders.append((key, value))
        elif last in ("limit", "offset"):
            number = _number(value)
            if number is not None:
                (limits if last == "limit" else offsets)[_level(key)] = number
        elif grammar.is_logic_key(key):
            trees.append((key, value))
        else:
            comparisons.append((key, value))
    # In this order, so that of several errors the same one is reported as by PostgREST.
    order: dict[Path, tuple[OrderTerm, ...]] = {}
    for key, value in orders:
        order.setdefault(_level(key), _part_of(value, _order, grammar.order))
    logic = [_logic_tree(key, value) for key, value in trees]
    listed = grammar.names("columns parameter", columns[0]) if columns else None
    select = _part_of(selects[0], _select, grammar.select) if selects else (SelectColumn(Field("*")),)
    filters: list[tuple[Path, Condition]] = []
    arguments: list[tuple[str, str]] = []
    for key, value in comparisons:
        path, field = _part_of(key, _key_path, grammar.key_path)
        if function_arguments and not is_operation(value):
            arguments.append((field.name, value))
        else:
            filters.append((path, Condition(field, grammar.operation(value))))
    on_conflict = grammar.names("on_conflict parameter", conflicts[0]) if conflicts else None
    return Query(
        select=select,
        filters=tuple(filters),
        logic=tuple(logic),
        order=tuple(order.items()),
        ranges=tuple(_ranges(limits, offsets)),
        columns=listed,
        on_conflict=on_conflict,
        arguments=tuple(arguments),
        filter_keys=tuple(key for key, _ in comparisons),
        has_ranges=() in limits or () in offsets,
        canonical=_canonical(pairs),
    )


MOST_DIGITS = 1000
"""Maximum number of digits of a limit or offset. PostgreSQL refuses numbers that are no `bigint`; longer texts are
ignored as if they were no numbers."""
LONGEST = 256
"""Maximum number of characters of a part whose parsed form is remembered."""
# Clients combine the same parts in many ways, and select lists are the longest ones.
_select, _order, _logic_key, _key_path = (
    lru_cache(maxsize=512)(grammar.select),
    lru_cache(maxsize=512)(grammar.order),
    lru_cache(maxsize=512)(grammar.logic_key),
    lru_cache(maxsize=512)(grammar.key_path),
)


def _part_of(text: str, cached: Callable[[str], Part], parse: Callable[[str], Part]) -> Part:
    """Return the parsed part for a text. cached: `parse` with a cache of its results, which is used for texts of at
    most `LONGEST` characters. parse: the parser without a cache. Parsed parts are immutable."""
    return cached(text) if len(text) <= LONGEST else parse(text)


def is_operation(value: str) -> bool:
    """Return whether a value is a filter on the result of a function, and not an argument.

    Values that begin with `not.`, `in.` or `is.` are filters whatever follows, and their syntax errors are reported.
    """
    if value.startswith(("not.", "in.", "is.")):
        return True
    return value.startswith(_OPERATOR_STARTS) and grammar.is_operation(value)


def _logic_tree(key: str, value: str) -> tuple[Path, LogicNode]:
    """Return path and group of a logic parameter. Raises `ApiError`."""
    path, negated, operator = _part_of(key, _logic_key, grammar.logic_key)
    return path, grammar.logic(operator, negated, value)


def _level(key: str) -> Path:
    """Return the path of the embed whose order or range the key `a.b.order` sets; it is empty for the top level. Raises
    `ApiError`."""
    return grammar.key_path(key)[0] if "." in key else ()


def _number(value: str) -> int | None:
    """Return a whole number of at most `MOST_DIGITS`, which may be negative; None for another text."""
    text = value.strip()
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > MOST_DIGITS:
        return None
    return int(text)


def _ranges(limits: dict[Path, int], offsets: dict[Path, int]) -> Iterable[tuple[Path, Range]]:
    """Yield the range of each level that has a limit or an offset.

    A negative offset of the top level becomes 0, and a limit other than 0 is reduced by as many rows, as if they
    preceded the first row. PostgreSQL refuses a negative offset of an embed. Raises `ApiError` for a negative limit,
    also for one that is negative after this reduction.
    """
    for path in dict.fromkeys((*limits, *offsets)):
        limit, offset = limits.get(path), offsets.get(path, 0)
        if offset < 0 and not path:
            limit = limit + offset if limit else limit
            offset = 0
        if limit is not None and limit < 0:
            raise errors.unsatisfiable_range(errors.NEGATIVE_LIMIT)
        yield path, Range(offset, limit)


def _canonical(pairs: list[tuple[str, str | None]]) -> str:
    """Return the parameters sorted by key and encoded again, for `Content-Location`.

    As PostgREST does, the values of a repeated key follow each other, separated by commas that are not encoded.
    """
    values: dict[str, list[str]] = {}
    for key, value in sorted(pairs, key=_key):
        values.setdefault(percent_encode(key), []).append(percent_encode(value or ""))
    return "&".join(f"{key}={','.join(items)}" for key, items in values.items())


def percent_encode(text: str) -> str:
    """Percent-encode a text, except unreserved characters (RFC 3986, 2.3)."""
    return text if _IS_UNRESERVED(text) else quote(text, _UNRESERVED)


def _key(pair: tuple[str, str | None]) -> str:
    """Return the key of a parameter, for sorting."""
    return pair[0]
