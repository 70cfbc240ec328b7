"""SQL of reads. The text depends only on the shape of the query.

Source: PostgREST's documentation, Tables and Views; Resource Embedding.

Identifiers come from the catalogue or are quoted by `quote_identifier`; values and keys of JSON paths are parameters.
A row is `alias.*`, also as an argument: without `.*`, a column with the name of the alias would have precedence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rowcall.core.postgrest.plan import Node, Plan
from rowcall.core.postgrest.request.tree import (
    Condition,
    Field,
    Group,
    JsonStep,
    LogicNode,
    Operation,
    OrderTerm,
    SelectColumn,
)
from rowcall.core.postgrest.schema import Column, Relation, Schema
from rowcall.core.postgrest.sql.output import JSON_ROWS, ROW, SOURCE, Output, Parameters, Statement, result_columns
from rowcall.core.text.naming import quote_identifier, quote_qualified

_OPERATORS = {
    "eq": "=",
    "neq": "<>",
    "gt": ">",
    "gte": ">=",
    "lt": "<",
    "lte": "<=",
    "like": "LIKE",
    "ilike": "ILIKE",
    "match": "~",
    "imatch": "~*",
    "cs": "@>",
    "cd": "<@",
    "ov": "&&",
    "sl": "<<",
    "sr": ">>",
    "nxr": "&<",
    "nxl": "&>",
    "adj": "-|-",
}
_LOGIC = {"and": " AND ", "or": " OR "}
_FULL_TEXT = {
    "fts": "to_tsquery",
    "plfts": "plainto_tsquery",
    "phfts": "phraseto_tsquery",
    "wfts": "websearch_to_tsquery",
}
MOST_OF_A_PAGE = 1000
"""Largest limit that is written into the text of a statement; larger ones are parameters."""
MANY_TESTS = 8
"""Number of tests of embeds in a count from which they are planned one by one instead of as joins."""
_IS = {"null": "NULL", "not_null": "NOT NULL", "true": "TRUE", "false": "FALSE", "unknown": "UNKNOWN"}
_AGGREGATES = {"sum": "sum", "avg": "avg", "count": "count", "min": "min", "max": "max"}
_JSON_TYPES = frozenset(("json", "jsonb"))


class Renderer:
    """Renders the levels of one plan as SQL, and adds their values to the parameters."""

    def __init__(
        self,
        schema: Schema,
        parameters: Parameters,
        whole_row: tuple[str, str] | None = None,
        declared: Relation | None = None,
    ) -> None:
        """whole_row: if the rows of a level come from a CTE with more columns than the relation, the quoted name of
        this level, and the SQL of its row with the columns of the relation only, for functions that take a row. None:
        there is no such level. declared: columns of the top level if it is not a relation of the schema."""
        self._schema = schema
        self._parameters = parameters
        self._rows = {} if whole_row is None else dict([whole_row])
        self._output_names: dict[int, list[str]] = {}
        self._declared = declared

    # --- values -----------------------------------------------------------------------------------------------------

    def field(self, table: str, field: Field, relation: Relation | None) -> str:
        """Return the SQL of a column and its JSON path. table: its quoted name. relation: has the type of the column;
        None: it is not known.

        The column is converted to JSON before a path is applied, unless its type is known to be JSON. Types of computed
        columns are not known.
        """
        text = f"{table}.{quote_identifier(field.name)}"
        if not field.path:
            return text
        column = relation.column(field.name) if relation is not None else None
        if column is None or column.base_type not in _JSON_TYPES:
            text = f"to_jsonb({text})"
        return text + "".join(map(self._path_step, field.path))

    def _path_step(self, step: JsonStep) -> str:
        """Return the SQL of one step of a JSON path, such as `->$1`. An index of less than ten digits is part of the
        text; other indexes and all keys are parameters. The parameter of a key has no cast, because errors of
        PostgreSQL about operators name the types of the operands."""
        arrow = "->>" if step.text else "->"
        if not step.index:
            return f"{arrow}{self._parameters.add(step.key)}"
        if len(step.key.lstrip("-")) < 10:
            return f"{arrow}{int(step.key)}" if int(step.key) >= 0 else f"{arrow}({int(step.key)})"
        return f"{arrow}{self._parameters.add(step.key)}::int"

    def _cast(self, text: str, cast: str | None) -> str:
        """Return the SQL of a value with a cast; without one for None."""
        return f"CAST({text} AS {_type_name(cast)})" if cast is not None else text

    # --- conditions -------------------------------------------------------------------------------------------------

    def condition(
        self,
        table: str,
        relation: Relation | None,
        node: LogicNode,
        level: Node | None,
        present: Callable[[Node], str] | None = None,
    ) -> str:
        """Return the SQL of a condition or of a logic tree.

        table, relation: as in `field`. level: the level whose embeds a condition may test for rows (`is.null`); None:
        conditions name columns only. present: returns the SQL condition that an embed has rows; None: the condition
        tests the join of the embed, which the statement has to contain.
        """
        if isinstance(node, Group):
            joined = _LOGIC[node.operator].join(
                self.condition(table, relation, member, level, present) for member in node.members
            )
            return f"NOT ({joined})" if node.negated else f"({joined})"
        embed = None if level is None else _tested_embed(level, node)
        if embed is not None:
            text = (present or _is_joined)(embed)
            return text if node.operation.negated else f"NOT {text}"
        return self._comparison(table, relation, node)

    def _comparison(self, table: str, relation: Relation | None, condition: Condition) -> str:
        """Return the SQL of a condition that names no embed."""
        operation = condition.operation
        left = self.field(table, condition.field, relation)
        text = self._operation(left, operation, condition.field, relation)
        return f"NOT {text}" if operation.negated else text

    def _operation(self, left: str, operation: Operation, field: Field, relation: Relation | None) -> str:
        """Return the SQL of an operation, without its negation. left: SQL of the field."""
        operator = operation.operator
        if operator == "in":
            elements = operation.value if isinstance(operation.value, tuple) else (operation.value,)
            column = relation.column(field.name) if relation is not None and not field.path else None
            if column is not None and ("text", column.domain or "") in self._schema.representations:
                operands = ", ".join(self._operand(item, field, relation) for item in elements)
                return f"{left} = ANY (ARRAY[{operands}])" if operands else "false"
            return f"{left} = ANY ({self._parameters.add(_array(elements))})"
        value = operation.value if isinstance(operation.value, str) else ""
        if operator == "is":
            return f"{left} IS {_IS[value]}"
        if operator == "isdistinct":
            return f"{left} IS DISTINCT FROM {self._operand(value, field, relation)}"
        if operator in _FULL_TEXT:
            return self._full_text(left, operation, value, field, relation)
        if operator in ("like", "ilike"):
            value = value.replace("*", "%")
            placeholder = self._parameters.add(value)
        else:
            placeholder = self._operand(value, field, relation, array=operation.quantifier is not None)
        if operation.quantifier is not None:
            return f"{left} {_OPERATORS[operator]} {operation.quantifier.upper()} ({placeholder})"
        return f"{left} {_OPERATORS[operator]} {placeholder}"

    def _full_text(self, left: str, operation: Operation, value: str, field: Field, relation: Relation | None) -> str:
        """Return the SQL of a full-text search. left: SQL of the field. value: the query.

        A column that is not known, such as a computed one, is searched as it is: it may be a `tsvector`.
        """
        configuration = ""
        if operation.configuration is not None:
            configuration = f"{self._parameters.add(operation.configuration)}, "
        column = relation.column(field.name) if relation is not None else None
        if column is not None and column.base_type != "tsvector":
            left = f"to_tsvector({configuration}{left})"
        return f"{left} @@ {_FULL_TEXT[operation.operator]}({configuration}{self._parameters.add(value)})"

    # --- levels -----------------------------------------------------------------------------------------------------

    def level(self, node: Node, parent: str | None = None, source: str | None = None) -> str:
        """Return the SELECT of a level and of the levels below.

        parent: quoted name of the level above, in the scope of the join. source: a CTE that replaces the relation.
        """
        relation = self._relation(node)
        table, origin = self._name_and_from_list(node, parent, source)
        joins = [self._join(child, table) for child in node.children]
        conditions = [*self._join_conditions(node, table, parent)]
        conditions.extend(self.condition(table, relation, member, node) for member in node.filters)
        items, grouping = self._items(node, table, relation)
        return " ".join(
            (
                f"SELECT {', '.join(items) or ('1 AS pgrst_empty' if node.depth else '')} FROM {origin}",
                *joins,
                *_where(conditions),
                *((f"GROUP BY {', '.join(grouping)}",) if grouping else ()),
                *self.order_and_range(node, table, relation),
            )
        )

    def _relation(self, node: Node) -> Relation | None:
        """Return the relation of a level; None: its columns are not known."""
        return self._schema.relations.get(node.relation) or (self._declared if node.depth == 0 else None)

    def select_to_count(self, root: Node, source: str | None = None) -> str:
        """Return a SELECT whose number of rows is the total of the request: the rows of the top level with its filters,
        without range and aggregates. source: as in `level`.

        Embeds are conditions: PostgreSQL joins them for all rows at once, while it would read a lateral join of a level
        for each row.
        """
        return self._level_to_count(root, source=source, many=_number_of_tests(root) >= MANY_TESTS)

    def _level_to_count(self, node: Node, parent: str | None = None, source: str | None = None, *, many: bool) -> str:
        """Return the SELECT that counts a level: its conditions, and tests of the embeds that drop rows. node, parent,
        source: as in `level`.

        many: the statement has `MANY_TESTS` tests of embeds or more. If so, a test that the filters of a level name
        several times is computed once, in a join, because repetitions multiply from level to level; otherwise it is
        repeated in the text.
        """
        relation = self._relation(node)
        table, origin = self._name_and_from_list(node, parent, source)
        tests = _embed_tests(node)
        shared = [child for child in node.children if many and tests.named[child.join_alias] > 1]
        names = {child.join_alias for child in shared}

        def present(child: Node) -> str:
            known = tests.required.get(child.join_alias)
            if known is not None:
                return "TRUE" if known else "FALSE"
            if child.join_alias in names:
                return f"{quote_identifier(child.join_alias)}.pgrst_exists"
            return self._exists(child, table, many=many)

        conditions = [*self._join_conditions(node, table, parent)]
        conditions.extend(self.condition(table, relation, member, node, present) for member in tests.filters)
        for child in node.children:
            known = tests.required.get(child.join_alias)
            if known is not None:
                conditions.append(f"{'' if known else 'NOT '}{self._exists(child, table, many=many)}")
        joins = (
            f"CROSS JOIN LATERAL (SELECT {self._exists(child, table, many=many)} AS pgrst_exists OFFSET 0) "
            f"AS {quote_identifier(child.join_alias)}"
            for child in shared
        )
        return " ".join((f"SELECT 1 FROM {origin}", *joins, *_where(conditions)))

    def _exists(self, child: Node, parent: str, *, many: bool) -> str:
        """Return the condition that an embed has rows within its range. parent: quoted name of the level above. many:
        as in `_level_to_count`. The subquery ends with the range of the embed if this can exclude all rows (an offset,
        or the limit 0), otherwise with `OFFSET 0` if `many` is set.

        Without LIMIT and OFFSET, PostgreSQL turns an EXISTS into a join, whose planning time grows exponentially with
        their number, or makes two plans for it (hashed and not), whose planning time grows exponentially with the
        depth.
        """
        rows = child.range
        cuts = rows.limit == 0 or rows.offset > 0
        bare = replace(child, order=())
        tail = self.order_and_range(bare, "", None) if cuts else ("OFFSET 0",) if many else ()
        return f"EXISTS ({' '.join((self._level_to_count(child, parent, many=many), *tail))})"

    def _name_and_from_list(self, node: Node, parent: str | None, source: str | None) -> tuple[str, str]:
        """Return the quoted name of a level in its SELECT, and the FROM list of this SELECT, without joins. Arguments
        as in `level`."""
        table = quote_identifier(node.alias)
        relationship = node.relationship
        if source is not None:
            return table, f"{quote_identifier(source)} AS {table}"
        if relationship is None:
            return (quote_qualified(*node.relation),) * 2
        if relationship.function is not None:
            function = quote_qualified(*relationship.function)
            row = self._rows.get(parent or "", f"{parent}.*")
            return table, f"{function}(({row})::{quote_qualified(*relationship.origin)}) AS {table}"
        origin = f"{quote_qualified(*node.relation)} AS {table}"
        junction = relationship.junction
        if junction is not None:
            between = quote_identifier(node.junction_alias)
            origin += f", {quote_qualified(junction.schema, junction.name)} AS {between}"
        return table, origin

    def order_and_range(self, node: Node, table: str, relation: Relation | None) -> Iterator[str]:
        """Yield the clauses ORDER BY, LIMIT and OFFSET of a level, as far as it has them."""
        if node.order:
            yield f"ORDER BY {', '.join(self._order_term(node, table, relation, term) for term in node.order)}"
        if node.range.limit is not None:
            yield f"LIMIT {self._limit(node.range.limit)}"
        if node.range.offset:
            yield f"OFFSET {self._parameters.add(str(node.range.offset))}::bigint"

    def _limit(self, limit: int) -> str:
        """Return a limit as SQL: a number in the text up to `MOST_OF_A_PAGE`, otherwise a parameter.

        With a parameter, PostgreSQL expects a tenth of all rows, and plans each execution anew because it considers
        that plan too expensive.
        """
        return str(limit) if 0 <= limit <= MOST_OF_A_PAGE else f"{self._parameters.add(str(limit))}::bigint"

    def _order_term(self, node: Node, table: str, relation: Relation | None, term: OrderTerm) -> str:
        """Return a term of ORDER BY, for a column of the level or of an embed. table: quoted name of the level."""
        if term.relation is not None and (child := node.child(term.relation)) is not None:
            below = self._schema.relations.get(child.relation)
            text = self.field(quote_identifier(child.join_alias), term.field, below)
        else:
            text = self.field(table, term.field, relation)
        return " ".join(part for part in (text, term.direction, term.nulls) if part)

    def _join_conditions(self, node: Node, table: str, parent: str | None) -> Iterator[str]:
        """Yield the conditions that join a level with the level above; none for the top level. For a function without
        SETOF, this includes that its row is not all NULL. table, parent: quoted names of both levels."""
        relationship = node.relationship
        if relationship is None:
            return
        if relationship.function is not None and node.single:
            # A function without SETOF returns a row of nulls if it finds none.
            yield f"NOT ({table}.* IS NULL)"
        junction = relationship.junction
        if junction is None:
            for outer, inner in relationship.columns:
                yield f"{table}.{quote_identifier(inner)} = {parent}.{quote_identifier(outer)}"
            return
        between = quote_identifier(node.junction_alias)
        for outer, inner in junction.columns:
            yield f"{between}.{quote_identifier(inner)} = {parent}.{quote_identifier(outer)}"
        for inner, target in junction.target_columns:
            yield f"{between}.{quote_identifier(inner)} = {table}.{quote_identifier(target)}"

    def _join(self, child: Node, parent: str) -> str:
        """Return the lateral join of an embed. parent: quoted name of the level above."""
        alias = quote_identifier(child.join_alias)
        word = "INNER" if child.inner else "LEFT"
        inside = self.level(child, parent)
        if child.single:
            return f"{word} JOIN LATERAL ({inside}) AS {alias} ON TRUE"
        if not child.spread:
            array = f"SELECT json_agg({alias}.*)::jsonb AS {alias} FROM ({inside}) AS {alias} HAVING count(*) > 0"
            return f"{word} JOIN LATERAL ({array}) AS {alias} ON TRUE"
        columns = ", ".join(
            f"json_agg({alias}.{quote_identifier(name)})::jsonb AS {quote_identifier(name)}"
            for name in self.output_names(child)
        )
        array = f"SELECT {columns or '1 AS pgrst_empty'} FROM ({inside}) AS {alias} HAVING count(*) > 0"
        return f"{word} JOIN LATERAL ({array}) AS {alias} ON TRUE"

    def output_names(self, node: Node) -> list[str]:
        """Return the keys that a level adds to the level above if it is a spread."""
        names = self._output_names.get(id(node))
        if names is None:
            # Each of the spreads above has the names too.
            names = self._output_names[id(node)] = list(dict.fromkeys(self._all_output_names(node)))
        return names

    def _all_output_names(self, node: Node) -> Iterator[str]:
        """Yield the keys of `output_names`, repeated ones too."""
        relation = self._schema.relations.get(node.relation)
        for column in node.columns:
            if column.field.name == "*" and not column.field.path and relation is not None:
                yield from (item.name for item in relation.columns)
            else:
                yield column.output_name
        for child in node.children:
            if child.spread:
                yield from self.output_names(child)
            elif not child.empty:
                yield child.name

    def _items(self, node: Node, table: str, relation: Relation | None) -> tuple[list[str], list[str]]:
        """Return the output columns of a level, and the terms of GROUP BY; the latter are empty without an aggregate.
        table: its quoted name."""
        plain: list[str] = []
        items: list[str] = []
        hoisted = node.spread
        aggregated = any(column.aggregate is not None for column in node.columns) and not hoisted
        for column in self._expand_columns(node.columns, relation):
            text, name = self._column(column, table, relation, raw=hoisted)
            if column.aggregate is None or hoisted:
                plain.append(self._group_expression(column, text, table, relation))
            items.append(text if name is None else f"{text} AS {quote_identifier(name)}")
        for child in node.children:
            for text, name, aggregate in self._embed_columns(child, raw=hoisted):
                aggregated = aggregated or aggregate
                if not aggregate:
                    plain.append(text)
                items.append(f"{text} AS {quote_identifier(name)}")
        return items, [self._group_term(text, table, relation) for text in plain] if aggregated else []

    def _expand_columns(self, columns: Sequence[SelectColumn], relation: Relation | None) -> Iterator[SelectColumn]:
        """Yield the selected columns, with all columns of the relation in place of `*` if a function renders the domain
        of any of them as JSON (`_output_function`).

        relation: None: its columns are not known, and `*` is not replaced.
        """
        for column in columns:
            every = column.field.name == "*" and not column.field.path and relation is not None
            if every and relation is not None and any(self._output_function(item) for item in relation.columns):
                yield from (SelectColumn(Field(item.name)) for item in relation.columns)
            else:
                yield column

    def _output_function(self, column: Column) -> tuple[str, str] | None:
        """Return the function that renders a column of a domain as JSON; None: the domain has no such function."""
        representation = self._schema.representations.get((column.domain or "", "json"))
        return None if representation is None else representation.function

    def _represented_column(self, text: str, field: Field, relation: Relation | None) -> str:
        """Return the SQL of a column, rendered as JSON by the function of its domain, if there is one. text: SQL of the
        column."""
        column = relation.column(field.name) if relation is not None and not field.path else None
        function = None if column is None else self._output_function(column)
        return text if function is None else f"{quote_qualified(*function)}({text})"

    def _operand(self, value: str, field: Field, relation: Relation | None, *, array: bool = False) -> str:
        """Return the SQL of an operand: its placeholder, converted by the function that reads texts as the domain of
        the column, if there is one.

        array: the operand is an array literal, whose elements are converted.
        """
        column = relation.column(field.name) if relation is not None and not field.path else None
        representation = None if column is None else self._schema.representations.get(("text", column.domain or ""))
        placeholder = self._parameters.add(value)
        if representation is None:
            return placeholder
        function = quote_qualified(*representation.function)
        if array:
            return f"ARRAY(SELECT {function}(element) FROM unnest({placeholder}::text[]) element)"
        return f"{function}({placeholder}::text)"

    def _group_expression(self, column: SelectColumn, text: str, table: str, relation: Relation | None) -> str:
        """Return the expression of GROUP BY for an output column: in general `text`, the SQL of the output column.

        It is the column itself if a function renders its domain as JSON, because JSON has no equality, or if it has a
        cast but no alias, as in PostgREST, so that the result can be sorted by the column.
        """
        known = relation.column(column.field.name) if relation is not None and not column.field.path else None
        represented = known is not None and self._output_function(known) is not None
        unnamed = column.cast is not None and column.alias is None and not column.field.path
        return self.field(table, column.field, relation) if represented or unnamed else text

    def _group_term(self, text: str, table: str, relation: Relation | None) -> str:
        """Return a term of GROUP BY; for `table.*`, all columns."""
        if text != f"{table}.*" or relation is None:
            return text
        return ", ".join(f"{table}.{quote_identifier(column.name)}" for column in relation.columns)

    def _column(
        self, column: SelectColumn, table: str, relation: Relation | None, *, raw: bool
    ) -> tuple[str, str | None]:
        """Return the SQL of an output column and its name; None: the name that PostgreSQL gives it.

        raw: the argument of an aggregate instead of the aggregate, because the level above computes it.
        """
        if column.field.name == "*" and not column.field.path:
            return f"{table}.*", None
        if column.field.name == "":
            return (
                ("1", column.output_name)
                if raw
                else (self._cast("count(*)", column.aggregate_cast), column.output_name)
            )
        field = self._represented_column(self.field(table, column.field, relation), column.field, relation)
        text = self._cast(field, column.cast)
        if column.aggregate is not None and not raw:
            text = self._cast(f"{_AGGREGATES[column.aggregate]}({text})", column.aggregate_cast)
        plain = column.alias is None and column.aggregate is None and column.cast is None and not column.field.path
        if plain and text == f"{table}.{quote_identifier(column.field.name)}":
            return text, None
        return text, column.output_name

    def _embed_columns(self, child: Node, *, raw: bool) -> Iterator[tuple[str, str, bool]]:
        """Yield what an embed adds to the level above: SQL, name, and whether it is an aggregate.

        raw: arguments of aggregates instead of the aggregates, because a level further above computes them.
        """
        alias = quote_identifier(child.join_alias)
        if not child.spread:
            if child.empty:
                return
            if child.single:
                yield f"row_to_json({alias}.*)::jsonb", child.name, False
            else:
                yield f"COALESCE({alias}.{alias}, '[]')", child.name, False
            return
        aggregates = {} if raw else child.hoisted
        for name in self.output_names(child):
            text = f"{alias}.{quote_identifier(name)}"
            if name in aggregates:
                column = aggregates[name]
                yield (
                    self._cast(f"{_AGGREGATES[column.aggregate or 'count']}({text})", column.aggregate_cast),
                    name,
                    True,
                )
            elif child.single:
                yield text, name, False
            else:
                yield f"COALESCE({text}, '[]')", name, False


def _array(elements: Sequence[str]) -> str:
    """Return texts as the value of an array parameter, such as `{"a","b"}`; it is not SQL."""
    return "{" + ",".join('"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in elements) + "}"


def _type_name(name: str | None) -> str:
    """Return the name of a type as SQL: its words, unquoted. A name with other characters than letters, digits, `_`,
    `$` and white space, which the grammar of casts does not allow, is quoted as one identifier."""
    words = (name or "").split()
    return (
        " ".join(words)
        if all(word.replace("_", "a").replace("$", "a").isalnum() for word in words)
        else quote_identifier(name or "")
    )


def read_statement(
    schema: Schema,
    plan: Plan,
    *,
    output: Output = JSON_ROWS,
    count: bool = False,
    count_limit: int | None = None,
) -> Statement:
    """Return the statement of a read. count: it also counts all rows, regardless of the range. count_limit: it counts
    at most one row more than this number, which shows that there are more; None: it counts all."""
    parameters = Parameters()
    renderer = Renderer(schema, parameters)
    source = renderer.level(plan.root)
    counted, total = "", "NULL"
    if count:
        counted = f", pgrst_count AS ({count_query(renderer, plan.root, count_limit)})"
        total = "SELECT count(*) FROM pgrst_count"
    sql = (
        f"WITH {SOURCE} AS ({source}){counted} SELECT {result_columns(output, total=total)} "
        f"FROM (SELECT * FROM {SOURCE}) {ROW}"
    )
    return Statement(sql, tuple(parameters.values))


def estimate_statement(schema: Schema, plan: Plan) -> Statement:
    """Return an EXPLAIN statement whose plan, as JSON, has the number of rows that the planner expects, regardless of
    the range."""
    parameters = Parameters()
    counted = count_query(Renderer(schema, parameters), plan.root, None)
    return Statement(f"EXPLAIN (FORMAT JSON) {counted}", tuple(parameters.values))


def count_query(renderer: Renderer, root: Node, limit: int | None, source: str | None = None) -> str:
    """Return the query whose rows are counted: with filters and embeds that drop rows, without range and order.

    limit: the query has at most one row more; None: all rows. source: a CTE that replaces the relation.
    """
    text = renderer.select_to_count(root, source=source)
    return text if limit is None else f"{text} LIMIT {limit + 1}"


def _is_joined(embed: Node) -> str:
    """Return the condition that the join of an embed has a row."""
    return f"({quote_identifier(embed.join_alias)}.* IS DISTINCT FROM NULL)"


def _where(conditions: Sequence[str]) -> Iterator[str]:
    """Yield a WHERE clause; none without conditions."""
    if conditions:
        yield f"WHERE {' AND '.join(conditions)}"


def _tested_embed(level: Node, node: LogicNode) -> Node | None:
    """Return the embed of a level that a condition `is.null` or `not.is.null` without a JSON path names; None: it is
    another condition, or a logic tree."""
    if isinstance(node, Group) or node.field.path:
        return None
    operation = node.operation
    return level.child(node.field.name) if operation.operator == "is" and operation.value == "null" else None


@dataclass(frozen=True, slots=True)
class _EmbedTests:
    """Which embeds of a level must or must not have rows. The keys are their `join_alias`.

    required: whether the embed must have rows (True) or must have none (False). filters: the filters of the level that
    `required` does not express. named: how often `filters` name each embed that is not in `required`.
    """

    required: dict[str, bool]
    filters: list[LogicNode]
    named: Counter[str]


def _embed_tests(level: Node) -> _EmbedTests:
    """Return the tests for rows of a level's embeds, from inner joins and from the filters `is.null` and
    `not.is.null`."""
    required = {child.join_alias: True for child in level.children if child.inner}
    filters: list[LogicNode] = []
    for member in level.filters:
        embed = _tested_embed(level, member)
        known = embed is not None and required.setdefault(embed.join_alias, _is_negated(member)) == _is_negated(member)
        if not known:
            filters.append(member)
    named = Counter(embed.join_alias for member in filters for embed in _embeds_in(level, member))
    for name in required:
        del named[name]
    return _EmbedTests(required, filters, named)


def _is_negated(node: LogicNode) -> bool:
    """Return whether a condition or a logic tree is negated."""
    return node.negated if isinstance(node, Group) else node.operation.negated


def _embeds_in(level: Node, node: LogicNode) -> Iterator[Node]:
    """Yield the embeds that a condition or a logic tree tests for rows. One that is named twice is yielded twice."""
    if isinstance(node, Group):
        for member in node.members:
            yield from _embeds_in(level, member)
    elif (embed := _tested_embed(level, node)) is not None:
        yield embed


def _number_of_tests(level: Node) -> int:
    """Return the number of EXISTS tests that the query of a count would contain if each test were written at every
    place that names its embed, on this level and below."""
    tests = _embed_tests(level)
    number = 0
    for child in level.children:
        times = 1 if child.join_alias in tests.required else tests.named[child.join_alias]
        number += times * (1 + _number_of_tests(child)) if times else 0
    return number
