"""Types of PostgreSQL by name, and their types in TypeScript: those of the values in JSON.

Names are those that `format_type` prints with an empty search path, so only types of PostgreSQL itself have no schema.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import orjson

Name = tuple[str, str]

_NUMBERS = frozenset({"smallint", "integer", "bigint", "real", "double precision", "numeric"})
_OTHERS = {
    "boolean": "boolean",
    "json": "Json",
    "jsonb": "Json",
    "void": "undefined",
    "record": "Record<string, unknown>",
}
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


@dataclass(frozen=True, slots=True)
class EnumType:
    """An enum. labels: its values in their order."""

    name: Name
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompositeType:
    """A composite type. attributes: pairs (name, name of its type)."""

    name: Name
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RowFunction:
    """A function whose only argument is a row of a relation. argument: name of the argument; empty: it has none.
    relation: the relation of this row. return_type: name of the type that it returns. target: the relation whose rows
    it returns; None: it returns no rows of a relation. single: it returns at most one row."""

    name: Name
    argument: str
    relation: Name
    return_type: str
    target: Name | None = None
    returns_set: bool = False
    single: bool = True


@dataclass(frozen=True, slots=True)
class TypeNames:
    """The types of a database that are not of PostgreSQL itself, by the name that `format_type` prints.

    rows: row types of relations; a value is the relation's name and whether it is a view. domains: a value is the name
    of the base type. texts: names of base types whose JSON values are strings.
    """

    enums: Mapping[str, EnumType] = field(default_factory=dict)
    composites: Mapping[str, CompositeType] = field(default_factory=dict)
    rows: Mapping[str, tuple[Name, bool]] = field(default_factory=dict)
    domains: Mapping[str, str] = field(default_factory=dict)
    texts: Collection[str] = ()
    row_functions: tuple[RowFunction, ...] = ()


class TypeScriptTypes:
    """Converts names of types to types of TypeScript. schemas: those that the type `Database` has. represented: names
    of types that casts convert to JSON."""

    def __init__(self, types: TypeNames, schemas: Collection[str], represented: Collection[str] = ()) -> None:
        self._types = types
        self._schemas = frozenset(schemas)
        self._represented = frozenset(represented)

    def type_of(self, name: str) -> str:
        """Return the type of a value in TypeScript, without null. name: as `format_type` prints it, without modifiers.

        Types that casts convert to JSON (`represented`) are `Json`. Numbers, booleans, JSON, arrays, domains, enums,
        composites and rows have corresponding types; `void` is `undefined`, and `record` is `Record<string, unknown>`.
        Of the other types, those of PostgreSQL itself (`uuid`, `date`) and the base types in `TypeNames.texts` are
        `string`; polymorphic ones (`anyelement`) and all others are `unknown`.
        """
        if name.endswith("[]"):
            return array(self.type_of(name.removesuffix("[]")))
        if name in self._represented:
            return "Json"
        if name in _NUMBERS:
            return "number"
        if name in _OTHERS:
            return _OTHERS[name]
        types = self._types
        if name in types.domains:
            return self.type_of(types.domains[name])
        if name in types.enums:
            enum = types.enums[name]
            return self._member(enum.name, "Enums") or literals(enum.labels)
        if name in types.composites:
            return self._member(types.composites[name].name, "CompositeTypes") or "Record<string, unknown>"
        if name in types.rows:
            relation, is_view = types.rows[name]
            place = self._member(relation, "Views" if is_view else "Tables")
            return f'{place}["Row"]' if place else "Record<string, unknown>"
        if name in types.texts:
            return "string"
        return "unknown" if "." in name or name.startswith("any") else "string"

    def _member(self, name: Name, kind: str) -> str | None:
        schema, member = name
        if schema not in self._schemas:
            return None
        return f"Database[{string_literal(schema)}][{string_literal(kind)}][{string_literal(member)}]"


def array(element: str) -> str:
    """Return the type of an array."""
    return f"({element})[]" if " | " in element else f"{element}[]"


def literals(labels: Collection[str]) -> str:
    """Return the union type of the labels as literals; `never` without labels."""
    return " | ".join(map(string_literal, labels)) or "never"


def string_literal(text: str) -> str:
    """Return a text as a literal of TypeScript."""
    return orjson.dumps(text).decode()


def key(name: str) -> str:
    """Return the name of a property, in quotes if it is no identifier."""
    return name if _IDENTIFIER.fullmatch(name) else string_literal(name)
