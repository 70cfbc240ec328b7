"""Methods that a resource allows: the header `Allow` of OPTIONS.

Source: PostgREST's documentation, OPTIONS method.
"""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.core.postgrest.schema import Function, Relation

ROOT_METHODS = "OPTIONS,GET,HEAD"


def relation_methods(relation: Relation) -> str:
    """Return the methods of a relation, separated by commas, whatever the privileges of the role."""
    return ",".join(_of_relation(relation))


def _of_relation(relation: Relation) -> Iterator[str]:
    """Yield the methods of a relation as texts to be joined by commas: first `ROOT_METHODS`, which are several, then
    each further method."""
    yield ROOT_METHODS
    if relation.insertable:
        yield "POST"
    if relation.insertable and relation.updatable and relation.key:
        yield "PUT"
    if relation.updatable:
        yield "PATCH"
    if relation.deletable:
        yield "DELETE"


def function_methods(function: Function) -> str:
    """Return the methods of a function, separated by commas: GET and HEAD only if it does not write."""
    return "OPTIONS,POST" if function.volatility == "v" else "OPTIONS,GET,HEAD,POST"
