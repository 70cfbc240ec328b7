"""Which operator says that two values of a type are equal, for filters on columns.

`=` alone is no answer: for `box` and `circle` it compares areas, `json` and `xml` have none, and that of an extension's
type is found only where the search path of the session reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.catalogue.casting import base_of
from rowcall.core.catalogue.catalog import TypeInfo, TypeKind

_EQUALS = "="


def equality(oid: int, types: Mapping[int, TypeInfo], operators: Mapping[int, str]) -> str | None:
    """The operator as SQL, or None when values of the type, or parts of them, cannot be compared.

    operators: of the base types that have one, by oid.
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
