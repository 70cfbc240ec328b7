"""The row of a login routine: special columns, and claims from all others (sign-in-14 to sign-in-18)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rowcall.core.auth.claims import ACTOR, Claim
from rowcall.core.auth.options import LoginOptions
from rowcall.core.text.array_literal import elements
from rowcall.core.text.naming import api_name

SECOND_FACTORS = ("passkey",)
"""Second factors that a login row may name."""
_BOOLEAN = 16
_BOOLEANS = 1000
_INTEGERS = frozenset({21, 23, 20})


class LoginRowError(Exception):
    """The routine returned a row that is no login row; the text gives the reason. Becomes status 500."""


class Cell(NamedTuple):
    """One value of a row, as the server printed it. type_oid: of the column. text: None: NULL."""

    name: str
    type_oid: int
    is_array: bool
    text: str | None
    json: str
    """The value as JSON."""


@dataclass(frozen=True, slots=True)
class LoginRow:
    """The content of a login row.

    status: 200, or another HTTP status, which is the response instead of a sign-in. refused: the status column is
    false; then status is 401, and the other columns are ignored. scheme: name of the scheme of the new session; None:
    the default. hash: the stored password hash to verify; None: no password is verified.
    """

    claims: tuple[Claim, ...] = ()
    status: int = 200
    refused: bool = False
    scheme: str | None = None
    body: str | None = None
    """None without such a column. NULL is an empty text."""
    hash: str | None = None
    second_factors: tuple[str, ...] = ()
    """Second factors of the user that the routine names, beside those that the service has stored."""


def read_login_row(cells: Sequence[Cell], options: LoginOptions) -> LoginRow:
    """Return the content of a login row. Names of special columns match in any case.

    Raises:
        LoginRowError: the status is neither a boolean nor an HTTP status, a second factor is unknown, or a column has
            the name of a claim that only the service sets.
    """
    special: dict[str, Cell] = {}
    claims: list[Claim] = []
    special_names = (options.status, options.scheme, options.body, options.hash, options.second_factor)
    names = {name.lower() for name in special_names if name is not None}
    for cell in cells:
        if cell.name.lower() in names:
            special[cell.name.lower()] = cell
        elif cell.name in ACTOR:
            raise LoginRowError(f"the column {cell.name} has the name of a claim that only `impersonate` sets")
        else:
            claims += claims_of(cell)
    status = _status(special.get(options.status.lower()))
    if status is None:
        return LoginRow(status=401, refused=True)
    body = special.get(options.body.lower())
    return LoginRow(
        claims=tuple(claims),
        status=status,
        scheme=_text(special.get(options.scheme.lower())) or None,
        body=None if body is None else body.text or "",
        hash=_text(special.get(options.hash.lower())) or None,
        second_factors=_second_factors(special.get((options.second_factor or "").lower())),
    )


def claims_of(cell: Cell) -> Iterator[Claim]:
    """Yield one claim for a scalar or NULL, and one for each element of an array (sign-in-17)."""
    if cell.text is None:
        yield cell.name, ""
    elif cell.is_array:
        for element in elements(cell.text):
            yield cell.name, _format_claim(element or "", cell.type_oid == _BOOLEANS)
    else:
        yield cell.name, _format_claim(cell.text, cell.type_oid == _BOOLEAN)


def _second_factors(cell: Cell | None) -> tuple[str, ...]:
    """Return the second factors that a cell names; none without the cell, or for NULL. Raises `LoginRowError` for
    one that does not exist."""
    if cell is None or not cell.text:
        return ()
    methods = tuple(dict.fromkeys(item for item in (elements(cell.text) if cell.is_array else [cell.text]) if item))
    unknown = next((method for method in methods if method not in SECOND_FACTORS), None)
    if unknown is not None:
        raise LoginRowError(f"the column {cell.name} is none of: {', '.join(SECOND_FACTORS)}")
    return methods


def _format_claim(text: str, is_boolean: bool) -> str:
    """Return the value of a claim for a text of PostgreSQL. A boolean becomes `True` or `False`, as in comparable
    services."""
    return {"t": "True", "f": "False"}.get(text, text) if is_boolean else text


def _text(cell: Cell | None) -> str | None:
    """Return the text of a cell; None: there is no such column, or it is NULL."""
    return None if cell is None else cell.text


def _status(cell: Cell | None) -> int | None:
    """Return the status that the column gives, or None if it refuses the sign-in. 200 without the column. Raises
    `LoginRowError` for NULL, and for a value that is neither a boolean nor a status from 200 to 599."""
    if cell is None:
        return 200
    if cell.text is None:
        raise LoginRowError(f"the column {cell.name} is NULL")
    if cell.type_oid == _BOOLEAN:
        return 200 if cell.text == "t" else None
    if cell.type_oid not in _INTEGERS:
        raise LoginRowError(f"the column {cell.name} is neither a boolean nor an integer")
    status = int(cell.text)
    if not 200 <= status <= 599:
        raise LoginRowError(f"the column {cell.name} holds {status}, which is no HTTP status of a response")
    return status


def row_json(cells: Sequence[Cell], options: LoginOptions, *, camel: bool) -> str:
    """Return the row as a JSON object, without the hash (sign-in-22). camel: keys in camel case."""
    cells_without_hash = (cell for cell in cells if cell.name.lower() != options.hash.lower())
    return "{" + ",".join(f"{json.dumps(api_name(cell.name, camel))}:{cell.json}" for cell in cells_without_hash) + "}"


def scheme_names(rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """Yield the schemes that a logout routine names: each value of each column that is neither NULL nor empty; of an
    array, its elements."""
    for cell in (cell for row in rows for cell in row):
        if cell.text is None:
            continue
        if cell.is_array:
            yield from (element for element in elements(cell.text) if element)
        elif cell.text:
            yield cell.text
