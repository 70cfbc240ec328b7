"""Equality operators of types, for filters on columns.

`=` is not always right: for `box` and `circle` it compares areas, `json` and `xml` have none, and the operator of an
extension's type is only found if it is in the search path of the session.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.catalogue.casting import base_of
from rowcall.core.catalogue.catalog import TypeInfo, TypeKind

_EQUALS = "="


def equality(oid: int, types: Mapping[int, TypeInfo], operators: Mapping[int, str]) -> str | None:
    """Return the equality operator of a type as SQL; None if values of the type, or parts of them, cannot be compared.

    operators: oid of a base type → its operator as SQL; base types without an operator are missing. types: by oid.
    """
    info = base_of(oid, types)
    if info is None:
        return None
    match info.kind:
        case TypeKind.BASE:
            return operators.get(info.oid)
        case TypeKind.ARRAY:
            return _EQUALS if equality(info.element, types, operators) else None
        case TypeKind.COMPOSITE:
            parts = (equality(attribute.type_oid, types, operators) for attribute in info.attributes)
            return _EQUALS if all(parts) else None
        case TypeKind.ENUM | TypeKind.RANGE | TypeKind.MULTIRANGE:
            return _EQUALS
        case _:
            return None
