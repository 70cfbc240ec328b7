"""A raw query string as a `Query`.

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
    SelectItem,
)

_UNRESERVED = "-_.~"
_IS_UNRESERVED = re.compile(r"[A-Za-z0-9_.~-]*").fullmatch
Part = TypeVar("Part")
_OPERATOR_STARTS = tuple(
    operator + end
    for operator in (*grammar.QUANTIFIED, *grammar.SIMPLE, *grammar.FULL_TEXT, "in", "is", "isdistinct")
    for end in (".", "(")
)


def parameters(raw: bytes) -> list[tuple[str, str]]:
    """Return the decoded keys and values of a query string, which is split at `&` and `;`. A part without `=` is left
    out."""
    result: list[tuple[str, str]] = []
    for part in raw.decode("latin-1").replace(";", "&").split("&"):
        key, equals, value = part.partition("=")
        if equals:
            result.append((decoded(key), decoded(value)))
    return result


def decoded(text: str) -> str:
    """Decode percent-encoding, and `+` as a blank."""
    return unquote_plus(text, errors="replace") if "%" in text or "+" in text else text


def parse_query(raw: bytes, *, function_arguments: bool = False) -> Query:
    """Parse a query string. function_arguments: a value without operator is an argument and not an error.

    Raises `ApiError`: `PGRST103` for a negative limit, `PGRST100` for any other error.
    """
    pairs = parameters(raw)
    select: tuple[SelectItem, ...] | None = None
    columns: tuple[str, ...] | None = None
    on_conflict: tuple[str, ...] | None = None
    filters: list[tuple[Path, Condition]] = []
    logic: list[tuple[Path, LogicNode]] = []
    order: dict[Path, tuple[OrderTerm, ...]] = {}
    limits: dict[Path, int] = {}
    offsets: dict[Path, int] = {}
    arguments: list[tuple[str, str]] = []
    filter_keys: list[str] = []
    has_ranges = False
    for key, value in pairs:
        last = key.rpartition(".")[2]
        if key == "select":
            select = _part_of(value, _select, grammar.select) if select is None else select
        elif key == "columns":
            columns = grammar.names("columns parameter", value) if columns is None else columns
        elif key == "on_conflict":
            on_conflict = grammar.names("on_conflict parameter", value) if on_conflict is None else on_conflict
        elif last == "order":
            path = _level(key)
            if path not in order:
                order[path] = _part_of(value, _order, grammar.order)
        elif last in ("limit", "offset"):
            has_ranges = True
            number = _number(value)
            if number is not None:
                (limits if last == "limit" else offsets)[_level(key)] = number
        elif (logic_key := _part_of(key, _logic_key, grammar.logic_key)) is not None:
            logic_path, negated, operator = logic_key
            logic.append((logic_path, grammar.logic(operator, negated, value)))
        elif function_arguments and not is_operation(value):
            arguments.append((key, value))
        else:
            path, field = _part_of(key, _key_path, grammar.key_path)
            filters.append((path, Condition(field, grammar.operation(value))))
            filter_keys.append(key)
    return Query(
        select=select if select is not None else (SelectColumn(Field("*")),),
        filters=tuple(filters),
        logic=tuple(logic),
        order=tuple(order.items()),
        ranges=tuple(_ranges(limits, offsets)),
        columns=columns,
        on_conflict=on_conflict,
        arguments=tuple(arguments),
        filter_keys=tuple(filter_keys),
        has_ranges=has_ranges,
        canonical=_canonical(pairs),
    )


LONGEST = 256
"""Maximum number of characters of a part whose parsed form is remembered."""
# Clients combine the same parts in many ways, and select lists are the longest ones.
_select, _order, _logic_key, _key_path = (
    lru_cache(maxsize=512)(grammar.select),
    lru_cache(maxsize=512)(grammar.order),
    lru_cache(maxsize=512)(grammar.logic_key),
    lru_cache(maxsize=512)(grammar.key_path),
)


def _part_of(text: str, remembered: Callable[[str], Part], parse: Callable[[str], Part]) -> Part:
    """Return `parse(text)`; for short texts by `remembered`, which caches results. Parsed parts are immutable."""
    return remembered(text) if len(text) <= LONGEST else parse(text)


def is_operation(value: str) -> bool:
    """Return whether a value is a filter on the result of a function, and not an argument.

    `is.` followed by an unknown word is an operation, and its syntax error is reported.
    """
    text = value.removeprefix("not.")
    if text.startswith("is."):
        return True
    if not text.startswith(_OPERATOR_STARTS):
        return False
    try:
        grammar.operation(value)
    except errors.ApiError:
        return False
    return True


def _level(key: str) -> Path:
    """Return the path of the embed whose order or range the key `a.b.order` sets; it is empty for the top level."""
    prefix = key.rpartition(".")[0]
    if not prefix:
        return ()
    path, field = grammar.key_path(prefix)
    return (*path, field.name)


def _number(value: str) -> int | None:
    text = value.strip()
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        return None
    return int(text)


def _ranges(limits: dict[Path, int], offsets: dict[Path, int]) -> Iterable[tuple[Path, Range]]:
    for path in dict.fromkeys((*limits, *offsets)):
        limit = limits.get(path)
        if limit is not None and limit < 0:
            raise errors.unsatisfiable_range(errors.NEGATIVE_LIMIT)
        yield path, Range(max(offsets.get(path, 0), 0), limit)


def _canonical(pairs: list[tuple[str, str]]) -> str:
    """Return the parameters sorted by key and encoded again, for `Content-Location`."""
    return "&".join(f"{encoded(key)}={encoded(value)}" for key, value in sorted(pairs, key=_key))


def encoded(text: str) -> str:
    """Percent-encode a text, except unreserved characters (RFC 3986, 2.3)."""
    return text if _IS_UNRESERVED(text) else quote(text, _UNRESERVED)


def _key(pair: tuple[str, str]) -> str:
    return pair[0]
