"""Types as SQL text: what stands after `::`.

The display text of a type depends on the search path of the session that printed it, and calls run on other sessions.
Casts are therefore built from the catalogue: built-in types by their own spelling, all others schema-qualified.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.catalogue.catalog import Attribute, TypeInfo, TypeKind
from rowcall.core.text.naming import quote_qualified

_UNBOUNDED = {"bpchar": "bpchar", "bit": '"bit"'}
"""Spelled as `character` or `bit`, a cast would mean length 1 and cut the value."""
_ANY_ARRAY = frozenset({"anyarray", "anycompatiblearray"})
_ANY_VALUE = frozenset({"any", "anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"})


def cast_text(oid: int, types: Mapping[int, TypeInfo]) -> str:
    """`integer`, `"shop"."box"[]`; pseudo-types become text, which is how a value of unknown type arrives."""
    info = types.get(oid)
    if info is None:
        return "text"
    if info.kind is TypeKind.ARRAY:
        return f"{cast_text(info.element, types)}[]"
    if info.kind is TypeKind.PSEUDO:
        return "text[]" if is_any_array(info) else "text"
    if info.schema == "pg_catalog":
        return _UNBOUNDED.get(info.name, info.display)
    return quote_qualified(info.schema, info.name)


def attribute_cast_text(attribute: Attribute, types: Mapping[int, TypeInfo]) -> str:
    """Like `cast_text`, with the length or precision that the attribute declares: `numeric(10,2)`."""
    scalar = element_of(attribute.type_oid, types) or types.get(attribute.type_oid)
    if scalar is not None and scalar.schema == "pg_catalog" and "(" in attribute.type_name:
        return attribute.type_name
    return cast_text(attribute.type_oid, types)


def element_of(oid: int, types: Mapping[int, TypeInfo]) -> TypeInfo | None:
    """Element type of an array type; None for everything that is no array."""
    info = types.get(oid)
    return types.get(info.element) if info is not None and info.kind is TypeKind.ARRAY else None


def base_of(oid: int, types: Mapping[int, TypeInfo]) -> TypeInfo | None:
    """The type below any number of domains."""
    info = types.get(oid)
    while info is not None and info.kind is TypeKind.DOMAIN:
        info = types.get(info.base)
    return info


def is_any_array(info: TypeInfo | None) -> bool:
    """`anyarray`, `anycompatiblearray`: whatever array a polymorphic routine takes or gives."""
    return info is not None and info.kind is TypeKind.PSEUDO and info.name in _ANY_ARRAY


def takes_no_text(info: TypeInfo | None) -> bool:
    """`anyrange`, `anyenum`, `record`: of no value in a request is it known which range, enum or row it is."""
    return info is not None and info.kind is TypeKind.PSEUDO and info.name not in _ANY_ARRAY | _ANY_VALUE
