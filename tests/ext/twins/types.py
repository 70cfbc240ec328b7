"""PostgreSQL types as far as they matter for JSON, and their registration in the Cython registry."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.ext.rendering.codecs import Codecs

FIRST_FREE_OID = 100_000
BUILT_IN = {"text": 25, "number": 1700, "boolean": 16, "json": 114, "datetime": 1184, "record": 2249}


class MalformedText(ValueError):
    """The text breaks the grammar of its type."""


@dataclass(frozen=True)
class Scalar:
    rule: str


@dataclass(frozen=True)
class Array:
    element: Type
    delimiter: str = ","


@dataclass(frozen=True)
class Composite:
    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True)
class Domain:
    base: Type


Type = Scalar | Array | Composite | Domain


class Registry:
    """Registers every twin type with an OID in one `Codecs`."""

    def __init__(self, resolve_nested: bool = True) -> None:
        self.codecs = Codecs(resolve_nested)
        self._next_oid = FIRST_FREE_OID

    def oid(self, kind: Type) -> int:
        if isinstance(kind, Scalar):
            return BUILT_IN[kind.rule]
        self._next_oid += 1
        oid = self._next_oid
        match kind:
            case Array(element, delimiter):
                self.codecs.define_array(oid, self.oid(element), delimiter)
            case Composite(fields):
                self.codecs.define_composite(oid, [(key.encode(), self.oid(field)) for key, field in fields])
            case Domain(base):
                self.codecs.define_domain(oid, self.oid(base))
        return oid
