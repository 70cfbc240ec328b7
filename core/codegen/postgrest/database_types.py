"""The type `Database` for supabase-js and postgrest-js, in the form that `supabase gen types typescript` writes.

Source: Supabase's documentation, Generating TypeScript Types; the types of @supabase/postgrest-js.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rowcall.core.codegen.postgrest.type_names import (
    CompositeType,
    EnumType,
    Name,
    RowFunction,
    TypeNames,
    TypeScriptTypes,
    array,
    key,
    literals,
    string_literal,
)
from rowcall.core.postgrest.schema import Argument, Cardinality, Column, Function, Relation, Relationship, Schema

VERSION = "14"
"""Version of PostgREST in the type: the last one whose features the types of the clients have."""
_EMPTY = "{\n[_ in never]: never\n}"
_JSON = "export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[]"
_HELPERS = """
type Schemas = Omit<Database, "__InternalSupabase">
type DefaultSchema = Schemas[{default}]
type Elsewhere = {{ schema: keyof Schemas }}
type SchemaAt<Place> = Place extends {{ schema: infer Name extends keyof Schemas }} ? Schemas[Name] : DefaultSchema
type Named<Place, Name, Members> = (Place extends Elsewhere ? Name : Place) extends infer Member extends keyof Members
  ? Members[Member]
  : never
type NamesAt<Place, Members> = Place extends Elsewhere ? keyof Members : never

/** A row as it is read. `Tables<"name">`, or `Tables<{{ schema: "other" }}, "name">`; so are the following types. */
export type Tables<
  Place extends keyof (DefaultSchema["Tables"] & DefaultSchema["Views"]) | Elsewhere,
  Name extends NamesAt<Place, SchemaAt<Place>["Tables"] & SchemaAt<Place>["Views"]> = never,
> = Named<Place, Name, SchemaAt<Place>["Tables"] & SchemaAt<Place>["Views"]> extends {{ Row: infer Row }} ? Row : never

/** A row as it is inserted. */
export type TablesInsert<
  Place extends keyof DefaultSchema["Tables"] | Elsewhere,
  Name extends NamesAt<Place, SchemaAt<Place>["Tables"]> = never,
> = Named<Place, Name, SchemaAt<Place>["Tables"]> extends {{ Insert: infer Row }} ? Row : never

/** Columns of a row to update. */
export type TablesUpdate<
  Place extends keyof DefaultSchema["Tables"] | Elsewhere,
  Name extends NamesAt<Place, SchemaAt<Place>["Tables"]> = never,
> = Named<Place, Name, SchemaAt<Place>["Tables"]> extends {{ Update: infer Row }} ? Row : never

export type Enums<
  Place extends keyof DefaultSchema["Enums"] | Elsewhere,
  Name extends NamesAt<Place, SchemaAt<Place>["Enums"]> = never,
> = Named<Place, Name, SchemaAt<Place>["Enums"]>

export type CompositeTypes<
  Place extends keyof DefaultSchema["CompositeTypes"] | Elsewhere,
  Name extends NamesAt<Place, SchemaAt<Place>["CompositeTypes"]> = never,
> = Named<Place, Name, SchemaAt<Place>["CompositeTypes"]>
"""


def database_types(schema: Schema, types: TypeNames, schemas: Sequence[str]) -> str:
    """Return the text of the file with the type `Database`. types: the types of the same database. schemas: the exposed
    ones, at least one, the default first."""
    represented = {item.source for item in schema.representations.values() if item.target == "json"}
    writer = _Writer(schema, types, TypeScriptTypes(types, schemas, represented))
    members = [_member("__InternalSupabase", _object([f"PostgrestVersion: {string_literal(VERSION)}"]))]
    members += [_member(key(name), writer.schema(name)) for name in schemas]
    text = f"{_JSON}\n\nexport type Database = {_object(members)}\n"
    constants = _object([f"{key(name)}: {writer.constants(name)}," for name in schemas])
    return (
        _indent_blocks(text)
        + _HELPERS.format(default=string_literal(schemas[0]))
        + _indent_blocks(f"\nexport const Constants = {constants} as const\n")
    )


def _indent_blocks(text: str) -> str:
    """Return the text with each line indented by two spaces for each brace or bracket that is open. Only a bracket at
    the end of a line opens, and only one at the start of a line closes."""
    depth = 0
    lines: list[str] = []
    for line in text.split("\n"):
        if line[:1] in ("}", "]"):
            depth -= 1
        lines.append("  " * depth + line if line else "")
        if line[-1:] in ("{", "["):
            depth += 1
    return "\n".join(lines)


def _object(members: Iterable[str]) -> str:
    lines = "\n".join(members)
    return f"{{\n{lines}\n}}" if lines else _EMPTY


def _member(name: str, value: str) -> str:
    return f"{name}: {value}"


class _Writer:
    def __init__(self, schema: Schema, types: TypeNames, typescript: TypeScriptTypes) -> None:
        self._schema = schema
        self._types = types
        self._type = typescript.type_of
        self._computed: dict[Name, list[RowFunction]] = defaultdict(list)
        for item in types.row_functions:
            if item.target is None and not item.returns_set:
                self._computed[item.relation].append(item)

    def schema(self, name: str) -> str:
        relations = sorted(
            (item for item in self._schema.relations.values() if item.schema == name), key=lambda item: item.name
        )
        tables = (_member(key(item.name), self._relation(item)) for item in relations if not item.is_view)
        views = (_member(key(item.name), self._relation(item)) for item in relations if item.is_view)
        return _object(
            (
                _member("Tables", _object(tables)),
                _member("Views", _object(views)),
                _member("Functions", _object(self._functions(name))),
                _member(
                    "Enums", _object(_member(key(item.name[1]), literals(item.labels)) for item in self._enums(name))
                ),
                _member("CompositeTypes", _object(map(self._composite, self._composites(name)))),
            )
        )

    def constants(self, name: str) -> str:
        enums = [f"{key(item.name[1])}: [{', '.join(map(string_literal, item.labels))}]," for item in self._enums(name)]
        return _object((f"Enums: {_object(enums) if enums else '{}'},",))

    def _enums(self, schema: str) -> list[EnumType]:
        return sorted(
            (item for item in self._types.enums.values() if item.name[0] == schema), key=lambda item: item.name
        )

    def _composites(self, schema: str) -> list[CompositeType]:
        present = (item for item in self._types.composites.values() if item.name[0] == schema)
        return sorted(present, key=lambda item: item.name)

    def _composite(self, item: CompositeType) -> str:
        attributes = (f"{key(name)}: {self._type(type_name)} | null" for name, type_name in item.attributes)
        return _member(key(item.name[1]), _object(attributes))

    # --- relations -------------------------------------------------------------------------------------------------

    def _relation(self, relation: Relation) -> str:
        columns = sorted(relation.columns, key=lambda column: column.name)
        computed = sorted(
            (
                item
                for item in self._computed.get((relation.schema, relation.name), ())
                if relation.column(item.name[1]) is None
            ),
            key=lambda item: item.name,
        )
        read = [f"{key(column.name)}: {self._value(column)}" for column in columns]
        read += [f"{key(item.name[1])}: {self._type(item.return_type)} | null" for item in computed]
        members = [_member("Row", _object(read))]
        if relation.insertable or relation.updatable:
            inserted = [self._insert_member(column) for column in columns] if relation.insertable else []
            updated = [self._update_member(column) for column in columns] if relation.updatable else []
            members += (_member("Insert", _object(inserted)), _member("Update", _object(updated)))
        members.append(_member("Relationships", self._relationships(relation)))
        if computed:
            members.append(_member("ComputedFields", literals([item.name[1] for item in computed])))
        return _object(members)

    def _value(self, column: Column) -> str:
        result = self._type(_type_name(column))
        return f"{result} | null" if column.nullable and result != "unknown" else result

    def _insert_member(self, column: Column) -> str:
        if column.generated:
            return f"{key(column.name)}?: never"
        optional = "?" if column.nullable or column.default is not None else ""
        return f"{key(column.name)}{optional}: {self._value(column)}"

    def _update_member(self, column: Column) -> str:
        return f"{key(column.name)}?: {'never' if column.generated else self._value(column)}"

    def _relationships(self, relation: Relation) -> str:
        held = (
            item
            for item in self._schema.relationships.get((relation.schema, relation.name), ())
            if _holds_key(item) and item.target[0] == relation.schema
        )
        entries = sorted(held, key=lambda item: (item.constraint, item.target, item.columns))
        if not entries:
            return "[]"
        lines = "\n".join(f"{_relationship(item)}," for item in entries)
        return f"[\n{lines}\n]"

    # --- functions -------------------------------------------------------------------------------------------------

    def _functions(self, schema: str) -> Iterator[str]:
        variants: dict[str, list[str]] = defaultdict(list)
        of_rows = {(item.name, item.argument): item for item in self._types.row_functions}
        for (namespace, name), overloads in self._schema.functions.items():
            if namespace == schema:
                variants[name] += (
                    self._function(function)
                    for function in overloads
                    if len(function.arguments) != 1
                    or ((namespace, name), function.arguments[0].name) not in of_rows
                    or function.arguments[0].type not in self._types.rows
                )
        for item in self._types.row_functions:
            if item.name[0] == schema:
                variants[item.name[1]].append(self._row_function(item))
        for name in sorted(variants):
            yield _member(key(name), "\n| ".join(variants[name]))

    def _function(self, function: Function) -> str:
        members = [
            _member("Args", self._arguments(function.arguments)),
            _member("Returns", self._return_type(function)),
        ]
        if function.relation is not None and function.relation in self._schema.relations:
            members.append(
                _setof("*", function.relation[1], single=not function.returns_set, returns_set=function.returns_set)
            )
        return _object(members)

    def _arguments(self, arguments: Sequence[Argument]) -> str:
        if not arguments:
            return "never"
        return _object(
            f"{key(item.name)}{'' if item.required else '?'}: {self._type(item.type)}"
            for item in sorted(arguments, key=lambda item: item.name)
        )

    def _return_type(self, function: Function) -> str:
        if function.outputs:
            outputs = sorted(function.outputs, key=lambda item: item.name)
            result = _object(f"{key(item.name)}: {self._type(item.type)}" for item in outputs)
        else:
            result = self._type(function.return_type)
        return array(result) if function.returns_set else result

    def _row_function(self, item: RowFunction) -> str:
        relation = self._schema.relations.get(item.relation)
        kind = "Views" if relation is not None and relation.is_view else "Tables"
        row = (
            f"Database[{string_literal(item.relation[0])}][{string_literal(kind)}][{string_literal(item.relation[1])}]"
            + '["Row"]'
        )
        returned = self._type(item.return_type)
        if item.returns_set and not (item.target is not None and item.single):
            returned = array(returned)
        if item.target is None and not item.argument:
            field = f"{item.relation[1]}.{item.name[1]}"
            returned = (
                f"{{ error: true }} & {string_literal(f'it cannot be called; select the computed field {field}')}"
            )
        members = [_member("Args", _object((f"{key(item.argument)}: {row}",))), _member("Returns", returned)]
        if item.target is not None:
            members.append(_setof(item.relation[1], item.target[1], single=item.single, returns_set=item.returns_set))
        return _object(members)


def _type_name(column: Column) -> str:
    """Return the name of the type of a column without modifiers; for a column of a domain, that of the domain."""
    return column.domain or column.base_type or column.type


def _holds_key(relationship: Relationship) -> bool:
    """Return whether a relationship is a foreign key that the relation itself has, not one that refers to it, a
    junction or a computed relationship."""
    if relationship.function is not None or relationship.junction is not None or relationship.referenced:
        return False
    return relationship.cardinality in (Cardinality.MANY_TO_ONE, Cardinality.ONE_TO_ONE)


def _relationship(item: Relationship) -> str:
    return _object(
        (
            f"foreignKeyName: {string_literal(item.constraint)}",
            f"columns: [{', '.join(string_literal(outer) for outer, _ in item.columns)}]",
            f"isOneToOne: {'true' if item.cardinality is Cardinality.ONE_TO_ONE else 'false'}",
            f"referencedRelation: {string_literal(item.target[1])}",
            f"referencedColumns: [{', '.join(string_literal(inner) for _, inner in item.columns)}]",
        )
    )


def _setof(origin: str, target: str, *, single: bool, returns_set: bool) -> str:
    options = (
        f"from: {string_literal(origin)}",
        f"to: {string_literal(target)}",
        f"isOneToOne: {'true' if single else 'false'}",
        f"isSetofReturn: {'true' if returns_set else 'false'}",
    )
    return _member("SetofOptions", _object(options))
