"""The parameters of the query language of an endpoint, for documents, tools and generated clients."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.core.catalogue.value_constraints import ValueConstraints
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ValueKind
from rowcall.core.queryable.language import (
    AFTER,
    BEFORE,
    LIMIT,
    OFFSET,
    ORDER,
    RESERVED,
    SELECT,
    Language,
    language_of,
)


def query_parameters(endpoint: Endpoint) -> Iterator[EndpointParameter]:
    """Yield the parameters of the query language of an endpoint; none if its result cannot be queried. All are optional
    and in the query string.

    Encrypted columns are left out, and columns with the name of another parameter, because requests can name these only
    in a logic tree.
    """
    language = language_of(endpoint)
    if language is None:
        return
    abilities = language.abilities
    if abilities.filter:
        for column in language.columns:
            if column.comparable and column.key not in language.own and column.key not in RESERVED:
                yield _parameter(column.key, f"Filter: an operator and a value, such as eq.{_example(column.type_oid)}")
        yield _parameter("and", "Filters that all have to be true: (id.gt.5,id.lt.9)")
        yield _parameter("or", "Filters of which one has to be true: (id.lt.5,id.gt.9)")
    if abilities.select:
        yield _parameter(SELECT, f"Columns of the result, separated by commas: {_example_columns(language)}")
    if abilities.order:
        yield _parameter(ORDER, "Columns, each with .asc or .desc, and .nullsfirst or .nullslast: id.desc")
    if abilities.page:
        most = f"Most rows of the response: {language.default_rows} if it is missing, at most {language.most_rows}"
        yield _parameter(LIMIT, most, ValueKind.BIGINT)
        yield _parameter(OFFSET, "Rows to skip", ValueKind.BIGINT)
        if language.unique:
            yield _parameter(AFTER, "Cursor of the Link header: the page behind it")
            yield _parameter(BEFORE, "Cursor of the Link header: the page in front of it; empty: the last page")


def _example(type_oid: int) -> str:
    """Return a value for the example of a filter."""
    return {16: "true", 1082: "2026-01-31", 1184: "2026-01-31T12:00:00Z", 25: "text", 1043: "text"}.get(type_oid, "5")


def _example_columns(language: Language) -> str:
    return ",".join(column.key for column in language.columns[:3])


def _parameter(name: str, text: str, kind: ValueKind = ValueKind.TEXT) -> EndpointParameter:
    """Return the description of a parameter of the query language. text: its meaning."""
    return EndpointParameter(
        db_name=name,
        api_name=name,
        kind=kind,
        array=False,
        cast="text" if kind is ValueKind.TEXT else "bigint",
        has_default=True,
        position=-1,
        constraints=ValueConstraints(never_null=True, text=text),
        of_query=True,
    )
