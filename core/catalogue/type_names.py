"""Names of types in comments: `int`, `timestamptz`, `double precision[]`, `shop.crate`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.core.catalogue.casting import cast_text
from rowcall.core.catalogue.catalog import TypeInfo, TypeKind

_WORD = re.compile(r"(?P<name>[^()\[\];]+)(?P<modifier>\([\d, ]+\))?(?P<array>(?:\[\d*\])*);?")

_BUILT_IN = """
smallint int2
integer int4 int
bigint int8
real float4
double_precision float8 float double
numeric numeric decimal
money money
boolean bool
uuid uuid
timestamp_with_time_zone timestamptz
timestamp_without_time_zone timestamp
date date
time_without_time_zone time
time_with_time_zone timetz
interval interval
text text
character_varying varchar
character bpchar char
name name
xml xml
json json
jsonb jsonb
jsonpath jsonpath
bytea bytea
bit bit
bit_varying varbit
inet inet
cidr cidr
macaddr macaddr
macaddr8 macaddr8
point point
line line
lseg lseg
box box
path path
polygon polygon
circle circle
oid oid
regclass regclass
regtype regtype
tsvector tsvector
tsquery tsquery
pg_lsn pg_lsn
int4range int4range
int8range int8range
numrange numrange
tsrange tsrange
tstzrange tstzrange
daterange daterange
int4multirange int4multirange
int8multirange int8multirange
nummultirange nummultirange
tsmultirange tsmultirange
tstzmultirange tstzmultirange
datemultirange datemultirange
"""
"""In each line: name as `regtype` spells it, with `_` for blanks, catalogue name, other names."""

_BY_WORD: dict[str, tuple[str, str]] = {
    word: (display.replace("_", " ") if display != "pg_lsn" else display, name)
    for display, name, *others in (line.split() for line in _BUILT_IN.split("\n") if line)
    for word in (display.replace("_", " "), name, *others)
}


@dataclass(frozen=True, slots=True)
class NamedType:
    """The type that a word in a comment names.

    element: the type, or the type of the elements if `array`.
    """

    element: TypeInfo
    array: bool
    cast: str
    """The SQL of the type after `::`."""


def named_type(word: str, types: Mapping[int, TypeInfo]) -> NamedType | None:
    """Return the type that `word` names: a built-in type, in any case, or a type of the catalogue, as written. None:
    unknown. A length such as `(10,2)` is ignored; brackets make it an array, whatever their number.

    The `element` of a built-in type is not that of the catalogue: its oid is 0.
    """
    match = _WORD.fullmatch(word.strip())
    if match is None:
        return None
    name = match["name"].strip()
    type_and_cast = _find_built_in(name) or _of_catalogue(name, types)
    if type_and_cast is None:
        return None
    element, cast = type_and_cast
    array = bool(match["array"])
    return NamedType(element, array, f"{cast}[]" if array else cast)


def is_built_in(word: str) -> bool:
    """Return whether the word names a built-in type of PostgreSQL, or an array of one, in any case."""
    match = _WORD.fullmatch(word.strip())
    return match is not None and _find_built_in(match["name"].strip()) is not None


def _find_built_in(name: str) -> tuple[TypeInfo, str] | None:
    """Return the built-in type of this name, in any case, and its SQL for a cast; None: there is none. The type has the
    oid 0."""
    names = _BY_WORD.get(name.lower().removeprefix("pg_catalog."))
    if names is None:
        return None
    display, catalogue_name = names
    info = TypeInfo(0, "pg_catalog", catalogue_name, display, TypeKind.BASE, delimiter=";" if display == "box" else ",")
    return info, {"bit": '"bit"', "bpchar": "bpchar"}.get(catalogue_name, display)


def _of_catalogue(name: str, types: Mapping[int, TypeInfo]) -> tuple[TypeInfo, str] | None:
    """Return the first type of the catalogue, except arrays, whose name, display text or qualified name is `name`, and
    its SQL for a cast; None: there is none."""
    for info in types.values():
        qualified = f"{info.schema}.{info.name}"
        if info.kind is not TypeKind.ARRAY and name in (info.name, info.display, qualified):
            return info, cast_text(info.oid, types)
    return None
