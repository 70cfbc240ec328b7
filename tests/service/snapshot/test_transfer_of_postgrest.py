"""Transfer of the schema of PostgREST's interface: in parts, and later as changes."""

from __future__ import annotations

from dataclasses import replace

from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.core.postgrest.options import options_of
from rowcall.core.postgrest.relationships import relationships
from rowcall.core.postgrest.schema import Column, ForeignKey, Function, Relation, Schema
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot, SnapshotChange
from rowcall.service.snapshot.snapshot_transfer import ENDPOINTS, SnapshotParts, parts_of
from rowcall.service.supervisor.channel import PrepareSnapshotChange

TABLES = 4 * ENDPOINTS


def catalogue(tables: int) -> PostgRestCatalogue:
    """A schema in which each table but the first one refers to the first one."""
    names = [("api", f"t{number}") for number in range(tables)]
    columns = (Column("id", "integer", "integer", nullable=False), Column("up", "integer", "integer"))
    relations = {name: Relation(*name, columns, ("id",)) for name in names}
    keys = [ForeignKey(f"{name[1]}_up", name, ("up",), names[0], ("id",)) for name in names[1:]]
    functions = {("api", f"f{number}"): (Function("api", f"f{number}", ()),) for number in range(tables)}
    schema = Schema(relations, relationships(relations, keys), functions)
    return PostgRestCatalogue(options_of({"db-schemas": "api"}), schema)


def test_the_postgrest_schema_is_transferred_in_parts_of_limited_size() -> None:
    snapshot = SchemaSnapshot(1, (), {}, postgrest=catalogue(TABLES))
    *others, last = parts = list(parts_of(snapshot))
    reader = SnapshotParts()
    *nothing, read = map(reader.take, parts)
    assert len(parts) > 2 * TABLES // ENDPOINTS
    assert len(last) < sum(map(len, others)) / 4
    assert nothing == [None] * len(others)
    assert read == snapshot


def test_a_change_contains_changed_relations_only() -> None:
    before = SchemaSnapshot(1, (), {}, postgrest=catalogue(TABLES))
    known = catalogue(TABLES)
    relations = {name: item for name, item in known.schema.relations.items() if name != ("api", "t7")}
    relations["api", "t8"] = replace(relations["api", "t8"], comment="changed")
    relations["api", "new"] = Relation("api", "new", ())
    after = SchemaSnapshot(
        2, (), {}, postgrest=replace(known, timeout="5s", schema=replace(known.schema, relations=relations))
    )
    change = SnapshotChange.from_snapshots(before, after)
    sent = PrepareSnapshotChange.of(change)
    assert len(sent.pickled) < 5000
    assert sent.snapshot(before) == after
    assert SnapshotChange.from_snapshots(before, replace(before, number=2)).postgrest is None
