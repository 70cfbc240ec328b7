"""Types of columns whose values an insert of many rows may pass as arrays in place of JSON.

`json_to_recordset` gives the text of a value to the input function of its type. Arrays do so too, but convert one
column after the other, and before the statement runs. Therefore they are only used for values whose conversion cannot
fail, and for types for which that is easily checked.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rowcall.core.endpoint.endpoint import ValueKind
from rowcall.core.postgrest.schema import Column

_TYPE = re.compile(
    r"(?P<name>[a-z ]+?)(?:\((?P<length>[0-9]+)(?:,(?P<scale>-?[0-9]+))?\))?(?P<zone> with(?:out)? time zone)?"
)
"""A type as `format_type` prints it."""
_KINDS = {
    "smallint": ValueKind.SMALLINT,
    "integer": ValueKind.INTEGER,
    "bigint": ValueKind.BIGINT,
    "real": ValueKind.FLOAT,
    "double precision": ValueKind.FLOAT,
    "numeric": ValueKind.NUMERIC,
    "boolean": ValueKind.BOOLEAN,
    "uuid": ValueKind.UUID,
    "date": ValueKind.DATE,
    "timestamp without time zone": ValueKind.TIMESTAMP,
    "timestamp with time zone": ValueKind.TIMESTAMPTZ,
    "time without time zone": ValueKind.TIME,
    "text": ValueKind.TEXT,
    "character varying": ValueKind.TEXT,
    "character": ValueKind.TEXT,
    "json": ValueKind.JSON,
    "jsonb": ValueKind.JSON,
}
_ELEMENTS = {"character": "bpchar"}
"""Types whose name without a length means another length."""


class ArrayElement(NamedTuple):
    """The element of an array in place of a column.

    type: without length or precision, to which the insert converts. kind: of the values. limit: text: maximum number of
    characters; numeric: maximum number of digits before the point; -1: none. scale: numeric: digits behind the point.
    """

    type: str
    kind: ValueKind
    limit: int = -1
    scale: int = 0


def array_element(column: Column) -> ArrayElement | None:
    """Return the element of an array in place of a column; None: its values have to be JSON."""
    match = None if column.domain is not None else _TYPE.fullmatch(column.type)
    if match is None:
        return None
    name = match["name"] + (match["zone"] or "")
    kind = _KINDS.get(name)
    if kind is None:
        return None
    name = _ELEMENTS.get(name, name)
    if match["length"] is None or kind not in (ValueKind.TEXT, ValueKind.NUMERIC):
        return ArrayElement(name, kind)
    length, scale = int(match["length"]), int(match["scale"] or 0)
    if kind is ValueKind.TEXT:
        return ArrayElement(name, kind, length)
    return ArrayElement(name, kind, length - scale, scale) if 0 <= scale <= length else None
