"""Parse and check the query parameters of a request to a `queryable` endpoint: selection, filters, order and page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from rowcall.core.endpoint.capabilities import Queryable
from rowcall.core.errors.binding_error import quote_value
from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.request import grammar
from rowcall.core.postgrest.request.tree import (
    Condition,
    Field,
    Group,
    LogicNode,
    OrderTerm,
    SelectColumn,
    SelectItem,
)
from rowcall.core.queryable.language import AFTER, BEFORE, LIMIT, OFFSET, ORDER, SELECT, Language

Value = TypeVar("Value")

CASTS = frozenset(
    "text,varchar,character varying,json,jsonb,boolean,bool,smallint,integer,int,bigint,int2,int4,int8,numeric,"  # noqa: SIM905 (one list is easier to read than thirty lines)
    "decimal,real,float,float4,float8,double precision,date,time,timetz,timestamp,timestamptz,"
    "timestamp with time zone,timestamp without time zone,interval,uuid,bytea,inet".split(",")
)
"""Types of `select=column::type`. Other types could belong to schemas that callers must not know."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the ordered result, as a cursor has it: the row behind which the requested page begins (`after`),
    or before which it ends (`before`).

    values: for each term of the order, the text of the row's value; None: NULL. Empty: the end of the result.
    """

    values: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultRequest:
    """The checked query of a request: columns, conditions, order and page.

    columns: None: all. order: the terms of the request; if the result is paged, the columns that make the order unique
    follow. limit: maximum number of rows; None: the result is not paged. offset: number of rows before the page; None:
    0. position: the page begins behind it or, with `backwards`, ends before it; None: the request has no cursor.
    counted: the number of all rows is requested.
    """

    columns: tuple[SelectColumn, ...] | None = None
    conditions: tuple[LogicNode, ...] = ()
    order: tuple[OrderTerm, ...] = ()
    limit: int | None = None
    offset: int | None = None
    position: Position | None = None
    backwards: bool = False
    counted: bool = False

    @property
    def changes_nothing(self) -> bool:
        """Whether the request has no query, so that the result of the endpoint is returned unchanged."""
        return self == ResultRequest()


OpenCursor = Callable[[str, str, tuple[OrderTerm, ...]], Position]
"""Function that returns the position in a cursor. Arguments: name of the parameter, cursor, terms of the order. Raises
`BindingError` if the text is not a cursor for this order."""


def read_request(
    language: Language, pairs: Iterable[tuple[str, str]], open_cursor: OpenCursor, *, counted: bool = False
) -> ResultRequest:
    """Return the query that the parameters of a request describe. Unknown names are ignored if the endpoint ignores
    unknown parameters.

    pairs: decoded, without the endpoint's own parameters. counted: the number of all rows is requested; without effect
    if the result is not paged. Raises `BindingError` if a name is unknown, a value is invalid, a parameter other than a
    filter occurs twice, or two parameters exclude each other.
    """
    abilities = language.abilities
    single: dict[str, str] = {}
    conditions: list[LogicNode] = []
    allowed = _allowed_words(abilities)
    ignores = language.endpoint.refusals.ignores_unknown_parameters
    for key, value in pairs:
        if ignores and not is_query_key(language, key):
            continue
        if key in allowed:
            if key in single:
                raise language.invalid(key, "it is there twice")
            single[key] = value
        elif abilities.filter:
            conditions.append(_condition(language, key, value))
        else:
            raise _unknown(language, key)
    request = ResultRequest(
        columns=_parse_select(language, single[SELECT]) if SELECT in single else None,
        conditions=tuple(conditions),
        order=_order(language, single.get(ORDER)),
        counted=counted and abilities.page,
    )
    return _with_page(language, request, single, open_cursor) if abilities.page else request


def _allowed_words(abilities: Queryable) -> frozenset[str]:
    """Return the parameters besides filters that a query may have."""
    words = {SELECT: abilities.select, ORDER: abilities.order}
    words |= dict.fromkeys((LIMIT, OFFSET, AFTER, BEFORE), abilities.page)
    return frozenset(word for word, allowed in words.items() if allowed)


def is_query_key(language: Language, key: str) -> bool:
    """Return whether the key of a query parameter belongs to the query of a request: it is a word that the endpoint
    allows or, if it allows filters, a logic tree, such as `and` or `not.or`, or names a column."""
    if key in _allowed_words(language.abilities):
        return True
    if not language.abilities.filter:
        return False
    try:
        if grammar.is_logic_key(key):
            grammar.logic_key(key)
            return True
        path, field = grammar.key_path(key)
    except ApiError:
        return False
    return not path and language.column(field.name) is not None


def _with_page(
    language: Language, request: ResultRequest, single: dict[str, str], open_cursor: OpenCursor
) -> ResultRequest:
    """Return the request with its page: the limit, and the offset or position. With `before`, the page ends before the
    position; otherwise it begins behind it. An empty `after` stands for the first page, an empty `before` for the last
    one.

    single: text of each parameter that may occur once. Raises `BindingError` for an invalid number or cursor, for two
    of `offset`, `after` and `before`, and for a cursor if no columns identify a row.
    """
    limit = _number(language, LIMIT, single[LIMIT]) if LIMIT in single else language.default_rows
    request = replace(request, limit=min(limit, language.most_rows))
    requested = [key for key in (OFFSET, AFTER, BEFORE) if key in single]
    if len(requested) > 1:
        raise language.invalid(requested[1], f"it cannot be used together with {requested[0]}")
    if not requested:
        return request
    key = requested[0]
    if key == OFFSET:
        return replace(request, offset=_number(language, key, single[key]))
    if not language.unique:
        raise language.invalid(key, "the rows of this endpoint have no unique order; use offset")
    if not single[key] and key == AFTER:
        return request
    position = open_cursor(key, single[key], request.order) if single[key] else Position()
    return replace(request, position=position, backwards=key == BEFORE)


def _number(language: Language, key: str, text: str) -> int:
    """Return a number of rows of at most 18 digits. key: the parameter. Raises `BindingError`."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise language.invalid(key, f"{quote_value(text)} is not a number of rows")
    return int(text)


def _parse_value(language: Language, key: str, parse: Callable[[], Value]) -> Value:
    """Return the result of `parse`. Its syntax error becomes a `BindingError` that names the parameter `key`."""
    try:
        return parse()
    except ApiError as error:
        raise language.invalid(key, f"{error.details or error.message}") from None


def _unknown(language: Language, key: str) -> Exception:
    """Return the error for an unknown query parameter. If results can be filtered, its message suggests columns too."""
    own = sorted(language.own)
    if language.abilities.filter:
        return language.unknown(key, f"unknown parameter {quote_value(key)}{language.suggestion(key, own)}")
    listed = f"; there are {', '.join(own)}" if own else ""
    return language.unknown(key, f"unknown parameter {quote_value(key)}{listed}")


def _field(language: Language, key: str, field: Field) -> Field:
    """Return the field with the column's key in responses as its name. Raises `BindingError` if no column has the
    name of `field`, or if the column is encrypted. key: the parameter of the request."""
    column = language.column(field.name)
    if column is None:
        if key == field.name:
            raise _unknown(language, key)
        suggestion = language.suggestion(field.name)
        raise language.unknown(
            key, f"parameter {quote_value(key)}: unknown column {quote_value(field.name)}{suggestion}"
        )
    if not column.comparable:
        name = quote_value(field.name)
        message = f"the column {name} is encrypted in the database, so only whole rows with it can be read"
        raise language.invalid(key, message)
    return Field(column.key, field.path)


def _condition(language: Language, key: str, value: str) -> LogicNode:
    """Return the condition of a filter, or the logic tree, that a parameter sets. Raises `BindingError` if its key
    names no column that may be compared, or the value is invalid."""
    if grammar.is_logic_key(key):
        path, negated, operator = _parse_value(language, key, lambda: grammar.logic_key(key))
        if path:
            raise language.unknown(
                key, f"unknown parameter {quote_value(key)}: there is nothing below {quote_value(path[0])}"
            )
        group = _parse_value(language, key, lambda: grammar.logic(operator, negated, value))
        return _with_column_names(language, key, group)
    if language.column(key) is not None:
        field = Field(key)
    else:
        path, field = _parse_value(language, key, lambda: grammar.key_path(key))
        if path:
            raise _unknown(language, key)
    field = _field(language, key, field)
    try:
        return Condition(field, grammar.operation(value))
    except ApiError as error:
        if "." in value:
            raise language.invalid(key, f"{quote_value(value)} is no filter ({error.details})") from None
        example = f"{key}=eq.{value[:20]}"
        raise language.invalid(key, f"{quote_value(value)} begins with no operator, such as {example}") from None


def _with_column_names(language: Language, key: str, node: LogicNode) -> LogicNode:
    """Return a node of a logic tree with the keys of columns in responses as names. key: the parameter. Raises
    `BindingError` as `_field` does."""
    if isinstance(node, Group):
        return replace(node, members=tuple(_with_column_names(language, key, member) for member in node.members))
    return replace(node, field=_field(language, key, node.field))


def _parse_select(language: Language, text: str) -> tuple[SelectColumn, ...]:
    """Return the columns that `select` names; `*` stands for all columns. Raises `BindingError` for unknown columns and
    for names that occur twice in the result."""
    columns = [_select_item(language, item) for item in _parse_value(language, SELECT, lambda: grammar.select(text))]
    result = tuple(single for column in columns for single in column)
    names = [column.output_name for column in result]
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        raise language.invalid(SELECT, f"two columns would be called {quote_value(twice)}; rename one: other:{twice}")
    return result


def _select_item(language: Language, item: SelectItem) -> tuple[SelectColumn, ...]:
    """Return the columns of one item of `select`: several for `*`. Raises `BindingError` for embeds, aggregates,
    unknown columns, casts that are not allowed, and changes of encrypted columns or expanded composites."""
    if not isinstance(item, SelectColumn):
        raise language.invalid(
            SELECT, f"{quote_value(item.target)} cannot be embedded: the result has only its own columns"
        )
    if item.aggregate == "count" and not item.field.name and language.column("count") is not None:
        item = SelectColumn(Field("count"), item.alias, item.aggregate_cast)
    if item.aggregate is not None:
        raise language.invalid(SELECT, f"{item.aggregate}() is not allowed: write a routine that aggregates")
    if item.field.name == "*" and not item.field.path:
        return tuple(SelectColumn(Field(column.key)) for column in language.columns)
    column = language.column(item.field.name)
    if column is None:
        suggestion = language.suggestion(item.field.name)
        raise language.unknown(SELECT, f"parameter 'select': unknown column {quote_value(item.field.name)}{suggestion}")
    if item.cast is not None and item.cast.lower() not in CASTS:
        raise language.invalid(SELECT, f"there is no cast to {quote_value(item.cast)}")
    if (item.cast is not None or item.field.path) and not column.comparable:
        raise language.invalid(SELECT, f"the column {quote_value(item.field.name)} is encrypted in the database")
    if len(column.columns) > 1 and (item.alias is not None or item.cast is not None or item.field.path):
        raise language.invalid(
            SELECT, f"{quote_value(item.field.name)} stands for several columns, which stay as they are"
        )
    return (replace(item, field=Field(column.key, item.field.path)),)


def _order(language: Language, text: str | None) -> tuple[OrderTerm, ...]:
    """Return the terms of the order that the request names; if the result is paged, followed by the unique columns that
    are not among them. text: value of `order`; None: it is missing.

    Raises `BindingError` if a term is invalid or names no column or an encrypted one.
    """
    terms: list[OrderTerm] = []
    for term in () if text is None else _parse_value(language, ORDER, lambda: grammar.order(text)):
        if term.relation is not None:
            raise language.invalid(ORDER, f"there is nothing below {quote_value(term.relation)}")
        terms.append(replace(term, field=_field(language, ORDER, term.field)))
    if language.abilities.page:
        present = {term.field.name for term in terms if not term.field.path}
        terms += (OrderTerm(Field(name)) for name in language.unique if name not in present)
    return tuple(terms)


def order_text(order: Sequence[OrderTerm]) -> str:
    """Return the order as text. A cursor contains this text, so that the cursor is only accepted with the order for
    which it was made. The keys of JSON paths, which clients choose, are quoted."""
    return ",".join(
        "|".join(
            (
                term.field.name,
                *(
                    f"{'>>' if step.text else '>'}{step.key if step.index else repr(step.key)}"
                    for step in term.field.path
                ),
                term.direction or "ASC",
                term.nulls or "",
            )
        )
        for term in order
    )
