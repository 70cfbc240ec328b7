"""Columns of views that are plain columns of another relation, read from the stored query (`pg_rewrite.ev_action`).

PostgreSQL records the origin of each output column of a query in its target list, through sub-selects and CTEs. The
text is a tree of nodes in braces, of which only the target list of the outermost query is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

_TOKEN = re.compile(r"\\.|([{}])|:(targetList|override|resno|resorigtbl|resorigcol)\b ?(\d*)", re.DOTALL)
Origin = tuple[int, int]
"""Oid of a relation, and number of its column."""


def column_origins(action: str) -> list[tuple[int, Origin]]:
    """Return number and origin of each output column of a view that is a plain column of a relation.

    action: stored query of the view (`pg_rewrite.ev_action`). For a UNION, the origins are those of its first branch.
    """
    origins = [*_origins(action)]
    if not origins and ":setOperations {" in action:
        _, separator, branch = action.partition(":subquery {QUERY")
        origins = [*_origins(f"{{QUERY{branch}")] if separator else []
    return origins


def _origins(action: str) -> Iterator[tuple[int, Origin]]:
    """Yield number and origin of each output column that is a plain column, from the target list of the first query in
    the text. action: as in `column_origins`, or a part of it that begins with a query."""
    depth = 0
    inside = False
    number = table = 0
    for match in _TOKEN.finditer(action):
        brace, name, digits = match.groups()
        if brace == "{":
            depth += 1
        elif brace == "}":
            depth -= 1
            if not depth:
                return
        elif depth == 1 and name == "targetList":
            inside = True
        elif depth == 1 and name is not None:
            inside = False
        elif inside and depth == 2 and digits:
            if name == "resno":
                number = int(digits)
            elif name == "resorigtbl":
                table = int(digits)
            elif name == "resorigcol" and table:
                yield number, (table, int(digits))


def base_columns(views: Mapping[int, str]) -> Iterator[tuple[int, int, Origin]]:
    """Yield view, number of its column, and origin of this column in a relation that is not one of these views.

    views: oid of a view → its stored query.
    """
    origins = {view: dict(column_origins(action)) for view, action in views.items()}
    for view, columns in origins.items():
        for number, origin in columns.items():
            resolved = _resolve_origin(origin, origins)
            if resolved is not None:
                yield view, number, resolved


def _resolve_origin(origin: Origin, origins: Mapping[int, Mapping[int, Origin]]) -> Origin | None:
    """Return the origin of a column through any number of views. None: one of these views has an expression there."""
    for _ in range(100):  # views cannot refer to themselves; a limit all the same
        columns = origins.get(origin[0])
        if columns is None:
            return origin
        following = columns.get(origin[1])
        if following is None:
            return None
        origin = following
    return None


def names_of(columns: Iterable[int], names: Mapping[int, str]) -> tuple[str, ...] | None:
    """Return the names of columns by number; None: one number is unknown."""
    result = tuple(names.get(column, "") for column in columns)
    return None if "" in result else result
