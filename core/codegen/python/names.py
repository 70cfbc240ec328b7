"""Python identifiers."""

from __future__ import annotations

import keyword
import re

_TYPES = frozenset({"int", "float", "bool", "str", "list"})
_CLASSES = frozenset(
    (
        *("Any", "AsyncIterator", "Final", "IO", "Iterator", "Literal", "Mapping", "Sequence", "TypedDict"),
        *("ApiError", "AsyncClient", "Client", "File", "UNSET", "Unset"),
    )
)
"""Names that the modules of a client import or define themselves."""
_TAKEN = _TYPES | {"self", "cls", "close", "headers", "http", "httpx", "json"}
_APART = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Return the name as an identifier in snake_case: `findParcels` and `find-parcels` become `find_parcels`. A keyword
    or a name that clients use themselves gets a `_` at its end. A name that begins with a digit gets a `_` at its
    start."""
    apart = _APART.sub("_", re.sub(r"[^A-Za-z0-9]+", "_", name)).strip("_").lower()
    if not apart or apart[0].isdigit():
        apart = f"_{apart}"
    return f"{apart}_" if keyword.iskeyword(apart) or apart in _TAKEN else apart


def class_name(name: str) -> str:
    """Return an identifier in PascalCase as the name of a class: unchanged, or with a `_` at its end if it is a keyword
    or a name that clients use themselves."""
    return f"{name}_" if keyword.iskeyword(name) or name in _CLASSES else name


def is_plain(name: str) -> bool:
    """Return whether the name can be a member in the class body of a TypedDict.

    A name with two leading underscores would be mangled, and the name of a type would hide that type.
    """
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__") and name not in _TYPES
