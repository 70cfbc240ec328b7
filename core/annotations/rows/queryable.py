"""Annotations about queries over results: queryable, max_rows."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, keyword_form, split_at_word
from rowcall.core.endpoint.capabilities import Queryable

ABILITIES = ("select", "filter", "order", "page")


def _assign_queryable(draft: Draft, value: str) -> None:
    """Apply `select filter page 25 by id`. Without an ability, `select`, `filter`, `order` and `page` are all turned
    on. Abilities of earlier lines stay on; the number behind `page` and the columns behind `by` replace those of
    earlier lines. Raises `BadValueError` for another form."""
    words, unique = split_at_word(value.replace(",", " "), "by")
    abilities, rows = _abilities(words.split())
    draft.change_fields(
        "queryable",
        Queryable(),
        **(abilities or dict.fromkeys(ABILITIES, True)),
        rows=rows,
        unique=tuple((unique or "").split()),
    )


def _abilities(words: list[str]) -> tuple[dict[str, bool], int | None]:
    """Return the abilities that the words name, such as `filter`, and the number behind `page` or None.

    Raises `BadValueError` for another word.
    """
    abilities: dict[str, bool] = {}
    rows: int | None = None
    last = ""
    for word in words:
        lowered = word.lower()
        if lowered in ABILITIES:
            abilities[lowered] = True
        elif last == "page" and word.isascii() and word.isdigit() and 0 < len(word) <= 9 and int(word) > 0:
            rows = int(word)
        else:
            raise BadValueError(f"'{word}' is none of {', '.join(ABILITIES)}, page <rows>, by <column>")
        last = lowered
    return abilities, rows


def _assign_max_rows(draft: Draft, value: str) -> None:
    if not (value.isascii() and value.isdigit() and 0 < len(value) <= 9 and int(value) > 0):
        raise BadValueError(f"'{value}' is not a number of rows from 1 to 999999999")
    draft.change_fields("queryable", Queryable(), most=int(value))


ANNOTATIONS = (
    Annotation(
        name="queryable",
        aliases=("queryable",),
        syntax="queryable [select] [filter] [order] [page [<rows>]] [by <column>, ...]",
        description="Requests may select, filter, order and page the result over its columns; without words, all four. "
        "`page 25` is the usual number of rows. `by` names the columns that identify a row, if it is no table with a "
        "primary key.",
        apply=keyword_form(_assign_queryable),
        assign=_assign_queryable,
    ),
    Annotation(
        name="max_rows",
        aliases=("max_rows",),
        syntax="max_rows <number>",
        description="Most rows of a page of an endpoint with `queryable page`.",
        apply=keyword_form(_assign_max_rows),
        assign=_assign_max_rows,
        minimum_words=2,
        maximum_words=2,
    ),
)
