"""Dart classes of requests and responses: names, fields, conversion from and to JSON (clients-28, clients-29)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from rowcall.core.codegen.calls import Argument, is_plain
from rowcall.core.codegen.dart.names import WORDS, field_name, literal
from rowcall.core.codegen.names import free
from rowcall.core.codegen.options import DartOptions
from rowcall.core.codegen.shapes import INTEGER, TEXT, ListOf, Plain, Row, RowField, Scalar, Shape

_TYPES = {
    Scalar.INTEGER: "int",
    Scalar.BIGINT: "int",
    Scalar.FLOAT: "double",
    Scalar.NUMERIC: "double",
    Scalar.BOOLEAN: "bool",
    Scalar.TEXT: "String",
}
_DATES = (Scalar.DATE, Scalar.TIMESTAMP, Scalar.TIMESTAMPTZ)
SUBSCRIPTION = "SseSubscription"
UPLOADED = Row(
    (
        RowField("type", TEXT),
        RowField("fileName", TEXT),
        RowField("contentType", TEXT),
        RowField("size", INTEGER),
        RowField("success", Plain(Scalar.BOOLEAN)),
        RowField("status", TEXT),
    )
)
"""Metadata of an uploaded file (clients-21)."""


@dataclass(slots=True)
class Model:
    """A class of a request, a response or a composite."""

    name: str
    fields: tuple[tuple[str, RowField], ...]
    """Pairs of the name in Dart and the field."""
    raw: bool = False
    """The class stores the JSON object from which it was created."""


@dataclass(slots=True)
class Models:
    """The models of one file: composites first, then requests and responses in order. A method whose result contains
    the name of a class adds that class to the file."""

    options: DartOptions
    composites: list[Model] = field(default_factory=list)
    models: list[Model] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)
    _composite_names: dict[Row, str] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)
    _merged: dict[Row, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._taken |= {self.options.error_name, self.options.result_name, SUBSCRIPTION, *WORDS}

    def request(self, name: str, values: Iterable[Argument]) -> str:
        """Add the class of a request and return its name. With `unique_models`, an equal class that exists already is
        used instead. name: preferred one, without the configured prefix and suffix."""
        fields = tuple(
            RowField(item.key, item.shape, optional=item.optional, nullable=item.optional or item.nullable)
            for item in values
        )
        return self._add(Row(fields, name))

    def answer(self, row: Row) -> str:
        """Return the class name of a row, and add the class at its first use. Equal composites share one class; other
        rows share one only if they are the same `Row` object or, with `unique_models`, if they are equal."""
        if row.composite:
            return self._composite(row)
        # Equal rows of two endpoints have separate classes.
        known = self._names.get(id(row))
        if known is None:
            known = self._names[id(row)] = self._add(self._with_nullable_dates(row))
        return known

    def _with_nullable_dates(self, row: Row) -> Row:
        """Return the row with nullable dates: `infinity` and dates BC have no `DateTime` and become null."""
        return replace(
            row,
            fields=tuple(replace(item, nullable=item.nullable or self.is_date(item.shape)) for item in row.fields),
        )

    def upload_metadata(self, name: str) -> str:
        """Add a class for the metadata of an uploaded file and return its name. name: preferred one, without the
        configured prefix and suffix."""
        result = self._free(name)
        self.models.append(Model(result, self._fields(UPLOADED), raw=True))
        return result

    def _add(self, row: Row) -> str:
        if self.options.unique_models and row in self._merged:
            return self._merged[row]
        fields = self._fields(row)
        name = self._free(row.name)
        self._merged.setdefault(row, name)
        self.models.append(Model(name, fields))
        return name

    def _composite(self, row: Row) -> str:
        known = self._composite_names.get(row)
        if known is not None:
            return known
        # The classes of its fields are added before the class itself.
        fields = self._fields(self._with_nullable_dates(row))
        name = self._composite_names[row] = self._free(row.name)
        self.composites.append(Model(name, fields))
        return name

    def _fields(self, row: Row) -> tuple[tuple[str, RowField], ...]:
        fields: dict[str, RowField] = {}
        for item in row.fields:
            self.type_of(item.shape)
            name = field_name(item.key)
            while name in fields and fields[name].key != item.key:
                name += "_"
            fields.setdefault(name, item)
        return tuple(fields.items())

    def _free(self, name: str) -> str:
        name = f"{self.options.model_prefix}{name}{self.options.model_suffix}"
        if name in WORDS:
            name += "_"
        return free(name, self._taken)

    # --- values ------------------------------------------------------------------------------------------------

    def type_of(self, shape: Shape) -> str:
        """Return the Dart type of a value that is not null, and add the classes that it names."""
        if isinstance(shape, Row):
            return self.answer(shape)
        if isinstance(shape, ListOf):
            element = shape.element
            return f"List<{self.nullable(element) if _may_be_null(element) else self.type_of(element)}>"
        if shape.scalar is Scalar.JSON:
            return self.options.json_type
        if shape.scalar in _DATES:
            return "DateTime" if self.options.dates else "String"
        return _TYPES[shape.scalar]

    def nullable(self, shape: Shape) -> str:
        result = self.type_of(shape)
        return result if result == "dynamic" or result.endswith("?") else f"{result}?"

    def is_date(self, shape: Shape) -> bool:
        return self.options.dates and is_plain(shape, *_DATES)

    def from_json(self, shape: Shape, value: str, *, null: bool) -> str:
        """Return the Dart expression that converts a decoded JSON value to its Dart type. value: expression of the
        value. null: it may be null."""
        mark = "?" if null else ""
        if isinstance(shape, ListOf):
            inner = self.from_json(shape.element, "item", null=_may_be_null(shape.element))
            if inner == "item":
                return f"{value} as List<dynamic>{mark}"
            return f"({value} as List<dynamic>{mark}){mark}.map((item) => {inner}).toList()"
        if isinstance(shape, Row):
            made = f"{self.answer(shape)}.fromJson({value} as Map<String, dynamic>)"
            return f"{value} == null ? null : {made}" if null else made
        if is_plain(shape, Scalar.INTEGER, Scalar.BIGINT):
            return f"({value} as num{mark}){mark}.toInt()"
        if is_plain(shape, Scalar.FLOAT, Scalar.NUMERIC):
            # NaN and infinities are texts in JSON.
            made = f"double.parse({value}.toString())"
            return f"{value} == null ? null : {made}" if null else made
        if self.is_date(shape):
            return (
                f"{value} == null ? null : DateTime.tryParse({value} as String)"
                if null
                else f"DateTime.parse({value} as String)"
            )
        kind = self.type_of(shape)
        return value if kind == "dynamic" else f"{value} as {self.nullable(shape) if null else kind}"

    def to_json(self, shape: Shape, value: str, *, null: bool) -> str:
        """Return the Dart expression that converts a value to one that `jsonEncode` accepts. value: expression of the
        value. null: it may be null."""
        mark = "?" if null else ""
        if isinstance(shape, Row):
            return f"{value}{mark}.toJson()"
        if isinstance(shape, ListOf):
            inner = self.to_json(shape.element, "item", null=_may_be_null(shape.element))
            return value if inner == "item" else f"{value}{mark}.map((item) => {inner}).toList()"
        if not self.is_date(shape):
            return value
        if is_plain(shape, Scalar.DATE):
            return f"{value}{mark}.toIso8601String().substring(0, 10)"
        # Without a zone the server would take its own.
        in_utc = ".toUtc()" if is_plain(shape, Scalar.TIMESTAMPTZ) else ""
        return f"{value}{mark}{in_utc}.toIso8601String()"

    # --- text --------------------------------------------------------------------------------------------------

    def texts(self) -> Iterator[str]:
        """Yield the source of each class."""
        return (self._text(item) for item in (*self.composites, *self.models))

    def _text(self, model: Model) -> str:
        return "\n".join([f"class {model.name} {{", *self._lines(model), "}"])

    def _lines(self, model: Model) -> Iterator[str]:
        for name, member in model.fields:
            yield f"  final {self.nullable(member.shape) if member.nullable else self.type_of(member.shape)} {name};"
        if model.raw:
            yield "  final Map<String, dynamic> raw;"
        yield ""
        names = [f"    {'' if member.nullable else 'required '}this.{name}," for name, member in model.fields]
        if model.raw:
            names.append("    this.raw = const {},")
        if names:
            yield from _call_lines(f"  const {model.name}({{", names, "});")
        else:
            yield f"  const {model.name}();"
        yield ""
        yield f"  factory {model.name}.fromJson(Map<String, dynamic> json) {{"
        values = [
            f"      {name}: {self.from_json(member.shape, f'json[{literal(member.key)}]', null=member.nullable)},"
            for name, member in model.fields
        ]
        if model.raw:
            values.append("      raw: json,")
        yield from _call_lines(f"    return {model.name}(", values, ");", indent="    ")
        yield "  }"
        yield ""
        yield "  Map<String, dynamic> toJson() {"
        if model.raw:
            yield "    return raw;"
        else:
            yield from _call_lines(
                "    return {", [self._member(name, member) for name, member in model.fields], "};", "    "
            )
        yield "  }"

    def _member(self, name: str, member: RowField) -> str:
        condition = f"if ({name} != null) " if member.optional else ""
        return f"      {condition}{literal(member.key)}: {self.to_json(member.shape, name, null=member.nullable)},"


def _may_be_null(element: Shape) -> bool:
    """Return whether an item of a list may be null: an element of an array, or a row of one unnamed column, but no row
    with names."""
    return not isinstance(element, Row) or element.composite


def _call_lines(start: str, lines: list[str], end: str, indent: str = "  ") -> Iterator[str]:
    if lines:
        yield start
        yield from lines
        yield f"{indent}{end}"
    else:
        yield f"{start}{end}"
