"""Rows and composites as TypedDicts: types of the parsed JSON, which is not converted (clients-13, clients-17)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rowcall.core.codegen.names import free
from rowcall.core.codegen.python.names import class_name, is_plain
from rowcall.core.codegen.shapes import ListOf, Row, RowField, Scalar, Shape

_TYPES = {
    Scalar.INTEGER: "int",
    Scalar.BIGINT: "int",
    Scalar.FLOAT: "float",
    Scalar.NUMERIC: "float",
    Scalar.BOOLEAN: "bool",
    Scalar.JSON: "Any",
}


@dataclass(slots=True)
class Models:
    """The models of one file. Each model follows the models that it uses. A method whose result contains the name of a
    model adds that model to the file."""

    _texts: list[str] = field(default_factory=list)
    _taken: set[str] = field(default_factory=lambda: {"Call"})
    _composites: dict[Row, str] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def texts(self) -> Iterator[str]:
        return iter(self._texts)

    def type_of(self, shape: Shape) -> str:
        """Return the type annotation of a value that is not null, and add the models that it names."""
        if isinstance(shape, ListOf):
            return f"list[{self.nullable(shape.element, is_nested=True)}]"
        if isinstance(shape, Row):
            return self._row(shape)
        if shape.choices:
            return f"Literal[{', '.join(map(repr, shape.choices))}]"
        return _TYPES.get(shape.scalar, "str")

    def nullable(self, shape: Shape, *, is_nested: bool = False) -> str:
        """Return the type annotation of a value that may be null, and add the models that it names.

        is_nested: the value is an element of an array. Rows in an array count as never null: most of them are the rows
        of a result.
        """
        result = self.type_of(shape)
        return result if result == "Any" or (is_nested and isinstance(shape, Row)) else f"{result} | None"

    def argument_type(self, shape: Shape, *, null: bool) -> str:
        """Return the type annotation of an argument, and add the models that it names. Arrays accept any sequence.
        null: the argument may be null."""
        if isinstance(shape, ListOf):
            return f"Sequence[{self.nullable(shape.element)}]{' | None' if null else ''}"
        return self.nullable(shape) if null else self.type_of(shape)

    def _row(self, row: Row) -> str:
        known = self._composites.get(row) if row.composite else self._names.get(id(row))
        if known is not None:
            return known
        # The types of the members are added before the class itself.
        members = [(item.key, self._member(item)) for item in _distinct_fields(row)]
        name = free(class_name(row.name), self._taken)
        self._texts.append(_typed_dict(name, members))
        if row.composite:
            self._composites[row] = name
        else:
            self._names[id(row)] = name
        return name

    def _member(self, row_field: RowField) -> str:
        return self.nullable(row_field.shape) if row_field.nullable else self.type_of(row_field.shape)


def _distinct_fields(row: Row) -> Iterator[RowField]:
    seen: set[str] = set()
    for item in row.fields:
        if item.key not in seen:
            seen.add(item.key)
            yield item


def _typed_dict(name: str, members: list[tuple[str, str]]) -> str:
    if all(is_plain(key) for key, _ in members):
        return "\n".join([f"class {name}(TypedDict):", *(f"    {key}: {kind}" for key, kind in members)])
    # Keys that are no identifiers need the functional syntax, which evaluates types at once: they have to be quoted.
    listed = ", ".join(f"{key!r}: {kind!r}" for key, kind in members)
    return f"{name} = TypedDict({name!r}, {{{listed}}})"
