"""SQL text of types for casts: the text after `::`.

The display text of a type depends on the search path of the session that printed it, and calls run on other sessions.
Casts are therefore built from the catalogue: built-in types by their own spelling, all others schema-qualified.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.catalogue.catalog import Attribute, TypeInfo, TypeKind
from rowcall.core.text.naming import quote_qualified

_UNBOUNDED = {"bpchar": "bpchar", "bit": '"bit"'}
"""A cast to `character` or `bit` would mean length 1 and cut the value."""
_ANY_ARRAY = frozenset({"anyarray", "anycompatiblearray"})
"""Pseudo-types that stand for an array of any type."""
_ANY_VALUE = frozenset({"any", "anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"})
"""Pseudo-types that stand for a value of any type."""


def cast_text(oid: int, types: Mapping[int, TypeInfo]) -> str:
    """Return the SQL of a type for a cast: `integer`, `"shop"."box"[]`.

    Pseudo-types become `text`, the form in which values of unknown type are sent, and `anyarray` and
    `anycompatiblearray` become `text[]`. An unknown oid gives `text`.
    """
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
    """Return the same as `cast_text`; for a built-in type, or an array of one, with the length or precision that the
    attribute declares: `numeric(10,2)`."""
    scalar = element_of(attribute.type_oid, types) or types.get(attribute.type_oid)
    if scalar is not None and scalar.schema == "pg_catalog" and "(" in attribute.type_name:
        return attribute.type_name
    return cast_text(attribute.type_oid, types)


def element_of(oid: int, types: Mapping[int, TypeInfo]) -> TypeInfo | None:
    """Return the element type of an array type; None for other types."""
    info = types.get(oid)
    return types.get(info.element) if info is not None and info.kind is TypeKind.ARRAY else None


def base_of(oid: int, types: Mapping[int, TypeInfo]) -> TypeInfo | None:
    """Return the base type of a domain, also over several domains; other types are returned unchanged. None: unknown
    oid."""
    info = types.get(oid)
    while info is not None and info.kind is TypeKind.DOMAIN:
        info = types.get(info.base)
    return info


def is_any_array(info: TypeInfo | None) -> bool:
    """Return whether the type is `anyarray` or `anycompatiblearray`, an array of a polymorphic routine."""
    return info is not None and info.kind is TypeKind.PSEUDO and info.name in _ANY_ARRAY


def takes_no_text(info: TypeInfo | None) -> bool:
    """Return whether no value of a request can be sent for the type, because it is a pseudo-type such as `record` or
    `anyrange`, whose concrete type is unknown."""
    return info is not None and info.kind is TypeKind.PSEUDO and info.name not in _ANY_ARRAY | _ANY_VALUE
