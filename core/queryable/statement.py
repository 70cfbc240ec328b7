"""Wrap the SQL of a routine in a SELECT with the columns, filters, order and page of a request. The text depends only
on the shape of the request.

Columns come from the result of the routine; values of the request are parameters, behind those of the routine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rowcall.core.endpoint.endpoint import Endpoint, ResultColumn, ResultShape
from rowcall.core.postgrest.request.tree import Field, OrderTerm, SelectColumn
from rowcall.core.postgrest.schema import Relation, Schema
from rowcall.core.postgrest.sql.output import Parameters
from rowcall.core.postgrest.sql.reads import Renderer
from rowcall.core.queryable.language import AFTER, BEFORE, OFFSET, SOURCE, Language, QueryColumn
from rowcall.core.queryable.request import ResultRequest
from rowcall.core.text.naming import quote_identifier

_NOTHING = Schema({}, {})
_TABLE = quote_identifier(SOURCE)
_POSITION = "rowcall_position"
_NUMBER = "rowcall_number"
EMPTY = "''"
"""Position of the row behind the last row of a page if there is no such row."""


class _LabelledParameters(Parameters):
    """The parameters of a query, numbered behind those of the routine. labels: for each value, its origin in the
    request: the key of a column, or `offset`, `after` or `before`."""

    __slots__ = ("_first", "label", "labels")

    def __init__(self, first: int) -> None:
        super().__init__()
        self._first = first
        self.label = ""
        self.labels: list[str] = []

    def add(self, value: str | None) -> str:
        """Add a value with the current label, and return its placeholder."""
        super().add(value)
        self.labels.append(self.label)
        return f"${self._first + len(self.values)}"


class _LabellingRenderer(Renderer):
    """Renders conditions, and labels the values of a comparison with its column (`RenderedStatement.labels`)."""

    def __init__(self, parameters: _LabelledParameters) -> None:
        super().__init__(_NOTHING, parameters)
        self._following = parameters

    def field(self, table: str, field: Field, relation: Relation | None) -> str:
        self._following.label = field.name
        return super().field(table, field, relation)


@dataclass(frozen=True, slots=True)
class RenderedStatement:
    """A statement with its values. labels: for each value, its origin in the request: the key of a column, or `offset`,
    `after` or `before`."""

    sql: str
    values: tuple[str | None, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """The query of a request (`core.catalogue.source.ResultQuery`). positioned: the statement also returns the position
    of each row, one row more than the page and, if requested, the number of all rows."""

    language: Language
    request: ResultRequest
    positioned: bool

    @property
    def inner(self) -> Endpoint:
        return self.language.endpoint

    @property
    def page_size(self) -> int | None:
        return self.request.limit if self.positioned else None

    @property
    def counted(self) -> bool:
        return self.request.counted and self.positioned

    @property
    def without_positions(self) -> Query:
        return replace(self, positioned=False)

    def wrap_statement(self, sql: str, first: int) -> str:
        return self.render(sql, first).sql

    def render(self, sql: str = "", first: int = 0) -> RenderedStatement:
        """Return the statement and its values. sql: the statement of the endpoint. first: number of values that `sql`
        takes; those of the query follow. If only values and labels are needed, both may be left out."""
        parameters = _LabelledParameters(first)
        text = _Statement(self, parameters).text(sql)
        return RenderedStatement(text, tuple(parameters.values), tuple(parameters.labels))

    @property
    def shape(self) -> ResultShape:
        """The shape of the result with the selected columns."""
        shape = self.inner.shape
        if self.request.columns is None:
            return shape
        columns: list[ResultColumn] = []
        type_oids: list[int] = []
        for item in self.request.columns:
            column = self.language.column(item.field.name)
            if column is None:
                continue
            changed = item.cast is not None or bool(item.field.path)
            type_oids.append(0 if changed else column.type_oid)
            columns.extend(_output(column, item, changed=changed, number=len(type_oids)))
        return replace(
            shape, columns=tuple(columns), type_oids=tuple(type_oids) if shape.type_oids is not None else None
        )


def _output(column: QueryColumn, item: SelectColumn, *, changed: bool, number: int) -> Iterator[ResultColumn]:
    """Yield the columns of the result for one item of `select`: several, if the column is an expanded composite.
    changed: the item has a cast or a JSON path. number: of the column in the result of the query, from 1."""
    for part in column.columns:
        # Composites of files are recognized by their positions; all other columns are named by the query.
        position = number if part.position is not None and not changed else None
        key = part.key if position is not None and item.alias is None else item.output_name.encode()
        expression = part.expression or ("" if position is not None else quote_identifier(item.output_name))
        yield replace(part, key=key, position=position, expression=expression)


class _Statement:
    """Makes the SQL of one query."""

    def __init__(self, query: Query, parameters: _LabelledParameters) -> None:
        self._query = query
        self._request = query.request
        self._language = query.language
        self._parameters = parameters
        self._renderer = _LabellingRenderer(parameters)

    def text(self, sql: str) -> str:
        """Return the statement. sql: of the endpoint. Must be called once, because it adds the values to the
        parameters."""
        names = ", ".join(quote_identifier(column.key) for column in self._language.columns)
        selected = self._language.columns if self._request.columns is None else self._request.columns
        columns = [f'"c{number}"' for number, _ in enumerate(selected, 1)]
        if not self._query.positioned:
            return self._level(f"({sql}\n) as {_TABLE} ({names})", self._plain_columns())
        if not self._query.counted:
            return self._page(f"({sql}\n) as {_TABLE} ({names})", columns)
        page = self._page(_TABLE, columns)
        where = self._where(position=False)
        listed = ", ".join(f"p.{name}" for name in (*columns, _POSITION))
        return (
            f"with {_TABLE} ({names}) as not materialized ({sql}\n) select {listed}, t.{_NUMBER}::text from "
            f"(select count(*) as {_NUMBER} from {_TABLE}{where}) as t left join ({page}) as p on true"
        )

    def _page(self, source: str, names: list[str]) -> str:
        """Return the SELECT of a page and one further row. source: SQL after FROM. names: quoted names of the output
        columns, one for each selected column. One more column follows them: the position of the row.
        """
        expressions = [f"{text} as {name}" for text, name in zip(self._output_expressions(), names, strict=True)]
        level = self._level(source, [*expressions, f"{self._position()} as {_POSITION}"], more=1)
        if not self._request.backwards:
            return level
        listed = ", ".join(f"r.{name}" for name in names)
        position = f"case when r.{_NUMBER} > {self._request.limit} then {EMPTY} else r.{_POSITION} end"
        return (
            f"select {listed}{', ' if names else ''}{position} as {_POSITION} from "
            f"(select i.*, row_number() over () as {_NUMBER} from ({level}) as i) as r order by r.{_NUMBER} desc"
        )

    def _level(self, source: str, columns: list[str], more: int = 0) -> str:
        """Return the SELECT with the conditions, the position, the order, the limit and the offset of the request.
        source: SQL after FROM. columns: its output list. more: number of rows in addition to the limit."""
        request = self._request
        text = f"select {', '.join(columns)} from {source}{self._where(position=True)}"
        if request.order:
            text += f" order by {', '.join(self._order_term(term) for term in request.order)}"
        if request.limit is not None:
            # A number in the text: with a parameter, PostgreSQL expects a tenth of all rows and plans each time.
            text += f" limit {request.limit + more}"
        if request.offset:
            self._parameters.label = OFFSET
            text += f" offset {self._parameters.add(str(request.offset))}::bigint"
        return text

    # --- columns ----------------------------------------------------------------------------------------------------

    def _output_expressions(self) -> list[str]:
        """Return the expressions of the output columns."""
        selected = self._request.columns
        if selected is None:
            return [f"{_TABLE}.{quote_identifier(column.key)}" for column in self._language.columns]
        return [self._expression(item) for item in selected]

    def _plain_columns(self) -> list[str]:
        """Return the expressions of columns under the names that they have in formats with a header row."""
        selected = self._request.columns
        if selected is None:
            names = [column.name for column in self._language.columns]
        else:
            columns = [(item, self._language.column(item.field.name)) for item in selected]
            names = [
                column.name if column is not None and item.alias is None and not item.field.path else item.output_name
                for item, column in columns
            ]
        return [
            f"{text} as {quote_identifier(name)}" for text, name in zip(self._output_expressions(), names, strict=True)
        ]

    def _expression(self, item: SelectColumn) -> str:
        """Return the SQL of a selected column, with JSON path and cast."""
        text = self._renderer.field(_TABLE, item.field, self._language.relation)
        return text if item.cast is None else f"cast({text} as {item.cast.lower()})"

    # --- order and positions ----------------------------------------------------------------------------------------

    def _term(self, term: OrderTerm) -> str:
        """Return the SQL expression by which a term of the order sorts."""
        return self._renderer.field(_TABLE, term.field, self._language.relation)

    def _order_term(self, term: OrderTerm) -> str:
        """Return a term of ORDER BY; for a page that is read backwards, in the reverse direction."""
        descends, nulls_first = self._direction(term)
        text = f"{self._term(term)}{' desc' if descends else ''}"
        return text if nulls_first is descends else f"{text} nulls {'first' if nulls_first else 'last'}"

    def _direction(self, term: OrderTerm) -> tuple[bool, bool]:
        """Return whether a term descends, and whether its nulls come first; both reversed for a page that is read
        backwards."""
        descends = term.direction == "DESC"
        nulls_first = descends if term.nulls is None else term.nulls == "NULLS FIRST"
        if self._request.backwards:
            return not descends, not nulls_first
        return descends, nulls_first

    def _position(self) -> str:
        """Return the SQL expression for the position of a row: a JSON array of the texts by which rows are sorted, or
        `-` if no columns identify a row."""
        if not self._language.unique:
            return "'-'::text"
        return f"json_build_array({', '.join(f'({self._term(term)})::text' for term in self._request.order)})::text"

    def _where(self, *, position: bool) -> str:
        """Return the WHERE clause; empty without conditions. position: only the rows behind the position of the
        page."""
        request = self._request
        conditions = [
            self._renderer.condition(_TABLE, self._language.relation, node, None) for node in request.conditions
        ]
        if position and request.position is not None and request.position.values:
            conditions.append(self._beyond(request.position.values))
        return f" where {' and '.join(conditions)}" if conditions else ""

    def _beyond(self, values: tuple[str | None, ...]) -> str:
        """Return the condition for the rows that follow a position in the direction of reading. values: of the row at
        the position, one for each term of the order; None: NULL."""
        terms = list(zip(self._request.order, values, strict=True))
        simple = all(
            value is not None and term.field.name in self._language.not_null and not term.field.path
            for term, value in terms
        )
        directions = {self._direction(term)[0] for term, _ in terms}
        self._parameters.label = BEFORE if self._request.backwards else AFTER
        placeholders = [None if value is None else self._parameters.add(value) for value in values]
        if simple and len(directions) == 1:
            left = ", ".join(self._term(term) for term, _ in terms)
            right = ", ".join(str(placeholder) for placeholder in placeholders)
            return f"({left}) {'<' if directions.pop() else '>'} ({right})"
        text = ""
        for (term, _), placeholder in zip(reversed(terms), reversed(placeholders), strict=True):
            expression = self._term(term)
            behind = self._position_condition(term, expression, placeholder)
            same = f"{expression} is null" if placeholder is None else f"{expression} = {placeholder}"
            text = f"({behind} or ({same} and {text}))" if text else behind
        return text

    def _position_condition(self, term: OrderTerm, expression: str, placeholder: str | None) -> str:
        """Return the condition that the value of a term is behind that of a position. expression: SQL of the term.
        placeholder: of the value; None: it is NULL."""
        descends, nulls_first = self._direction(term)
        if placeholder is None:
            return f"{expression} is not null" if nulls_first else "false"
        text = f"{expression} {'<' if descends else '>'} {placeholder}"
        nullable = term.field.path or term.field.name not in self._language.not_null
        return f"({text} or {expression} is null)" if nullable and not nulls_first else text
