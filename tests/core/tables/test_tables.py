"""Tables → operations → statements, without a database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rowcall.core.building.endpoint_builder import build_endpoint
from rowcall.core.catalogue.catalog import Catalog, Identity, RoutineKind, Table, TableColumn
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.call import UncallableError, call_sql
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.http.routing import build_router
from rowcall.core.tables.operations import NAMES, Conflict
from rowcall.core.tables.routines import TableDefaults, table_routines
from tests.core.routines import EVERYTHING, GAUGE, TYPES


def column(name: str, oid: int = 23, **changes: Any) -> TableColumn:
    made = TableColumn(
        name=name,
        type_oid=oid,
        type_name=TYPES[oid].display,
        required=False,
        identity=Identity.NONE,
        readable=True,
        filterable=True,
        insertable=True,
        updatable=True,
        equality="=",
    )
    return replace(made, **changes)


ID = column("id", required=True)
NAME = column("Full Name", 25)
SIZE = column("size_of", insertable=False, updatable=False)
"""Generated."""


def table(*columns: TableColumn, key: tuple[str, ...] = ("id",), **changes: Any) -> Table:
    made = Table(
        oid=7,
        kind=RoutineKind.TABLE,
        schema="shop",
        name="item",
        comment=None,
        row_type_oid=GAUGE,
        columns=columns,
        key=key,
        key_decides=True,
        deletable=True,
    )
    return replace(made, **changes)


ITEM = table(ID, NAME, SIZE)
READ_ONLY = table(replace(ID, insertable=False, updatable=False), SIZE, key=(), deletable=False, kind=RoutineKind.VIEW)


def endpoints(of: Table, comment: str | None = None, defaults: TableDefaults | None = None) -> dict[str, Endpoint]:
    """By the operation's name."""
    result: dict[str, Endpoint] = {}
    for routine in table_routines([replace(of, comment=comment)], defaults or TableDefaults()):
        made = build_endpoint(routine, Catalog(150000, (), TYPES), EVERYTHING).endpoint
        if made is not None:
            result[routine.source.operation.name] = made  # type: ignore[union-attr]
    return result


def sql(of: Table, operation: str, *given: str, comment: str | None = None) -> str:
    made = endpoints(of, comment)[operation]
    mask = sum(1 << index for index, item in enumerate(made.parameters) if item.db_name in given)
    return call_sql(made, mask)


class TestStatements:
    def test_select_returns_all_columns_and_filters_by_the_given_ones(self) -> None:
        columns = '"id", "Full Name", "size_of"'
        assert sql(ITEM, "Select") == f'select {columns} from "shop"."item"'
        assert sql(ITEM, "Select", "id", "size_of") == (
            f'select {columns} from "shop"."item" where "id" = $1::integer and "size_of" = $2::integer'
        )

    def test_a_type_without_equality_is_compared_as_text(self) -> None:
        of = table(column("doc", 114, equality=None))
        assert sql(of, "Select", "doc").endswith('where "doc"::text = $1::json::text')

    def test_the_operator_of_an_extension_is_named_with_its_schema(self) -> None:
        of = table(column("mail", 25, equality='operator("ext".=)'))
        assert sql(of, "Select", "mail").endswith('where "mail" operator("ext".=) $1::text')

    def test_update_sets_the_given_columns_by_key(self) -> None:
        assert sql(ITEM, "Update", "id", "Full Name") == (
            'update "shop"."item" set "Full Name" = $2::text where "id" = $1::integer'
        )

    def test_delete_filters_by_the_given_columns(self) -> None:
        assert sql(ITEM, "Delete", "Full Name") == 'delete from "shop"."item" where "Full Name" = $1::text'

    def test_insert_writes_the_given_columns_only(self) -> None:
        assert sql(ITEM, "Insert", "id") == 'insert into "shop"."item" ("id") values ($1::integer)'

    def test_returning_gives_all_columns(self) -> None:
        ending = ' returning "id", "Full Name", "size_of"'
        assert sql(ITEM, "InsertReturning", "id").endswith(f"values ($1::integer){ending}")
        assert sql(ITEM, "UpdateReturning", "id", "Full Name").endswith(f'"id" = $1::integer{ending}')
        assert sql(ITEM, "DeleteReturning", "id").endswith(f'where "id" = $1::integer{ending}')

    def test_a_conflict_does_nothing_or_updates_the_other_columns(self) -> None:
        start = 'insert into "shop"."item" ("id", "Full Name") values ($1::integer, $2::text) on conflict ("id") do'
        assert sql(ITEM, "InsertOnConflictDoNothing", "id", "Full Name") == f"{start} nothing"
        assert sql(ITEM, "InsertOnConflictDoUpdate", "id", "Full Name") == (
            f'{start} update set "Full Name" = excluded."Full Name"'
        )

    def test_a_conflict_does_nothing_if_all_columns_are_in_the_key(self) -> None:
        both = table(column("a"), column("b"), key=("a", "b"))
        assert sql(both, "InsertOnConflictDoUpdate", "a", "b").endswith('on conflict ("a", "b") do nothing')

    def test_an_identity_generated_always_is_overridden_if_given(self) -> None:
        of = table(replace(ID, identity=Identity.ALWAYS, updatable=False), NAME)
        assert sql(of, "Insert", "Full Name") == 'insert into "shop"."item" ("Full Name") values ($1::text)'
        assert sql(of, "Insert", "id", "Full Name").startswith(
            'insert into "shop"."item" ("id", "Full Name") overriding system value values'
        )

    def test_names_are_quoted(self) -> None:
        evil = table(column('a"; drop table x; --'), name='i"t', key=())
        quoted = '"a""; drop table x; --"'
        assert sql(evil, "Select", 'a"; drop table x; --') == (
            f'select {quoted} from "shop"."i""t" where {quoted} = $1::integer'
        )


class TestTooLittle:
    """What a request means that names no rows, or not all of a key (tables-7, tables-8)."""

    def test_a_delete_without_filter_is_refused(self) -> None:
        with pytest.raises(UncallableError, match="which rows are meant"):
            sql(ITEM, "Delete")

    @pytest.mark.parametrize("comment", ["allow_unfiltered", "@allow_unfiltered = true"])
    def test_allow_unfiltered_permits_a_delete_without_filter(self, comment: str) -> None:
        assert sql(ITEM, "Delete", comment=comment) == 'delete from "shop"."item"'

    def test_a_part_of_the_key_updates_all_matching_rows(self) -> None:
        both = table(ID, column("part"), NAME, key=("id", "part"))
        part = sql(both, "Update", "part", "Full Name")
        assert part == 'update "shop"."item" set "Full Name" = $2::text where "part" = $1::integer'

    def test_an_update_without_a_key_column_is_refused(self) -> None:
        both = table(ID, column("part"), NAME, key=("id", "part"))
        with pytest.raises(UncallableError, match="an update needs a column of the key: id, part"):
            sql(both, "Update", "Full Name", comment="allow_unfiltered")

    def test_an_update_without_a_column_to_set_is_refused(self) -> None:
        with pytest.raises(UncallableError, match="a column besides those of the key"):
            sql(ITEM, "Update", "id")

    def test_an_insert_without_a_column_is_refused(self) -> None:
        with pytest.raises(UncallableError, match="an insert needs a column"):
            sql(table(NAME, key=()), "Insert")


class TestOperations:
    def test_a_writable_table_with_a_key_has_all_documented_endpoints(self) -> None:
        assert {name: made.name for name, made in endpoints(ITEM).items()} == {
            "Select": "GET /api/shop/item",
            "Update": "POST /api/shop/item",
            "UpdateReturning": "POST /api/shop/item/returning",
            "Insert": "PUT /api/shop/item",
            "InsertReturning": "PUT /api/shop/item/returning",
            "InsertOnConflictDoNothing": "PUT /api/shop/item/on-conflict-do-nothing",
            "InsertOnConflictDoNothingReturning": "PUT /api/shop/item/on-conflict-do-nothing/returning",
            "InsertOnConflictDoUpdate": "PUT /api/shop/item/on-conflict-do-update",
            "InsertOnConflictDoUpdateReturning": "PUT /api/shop/item/on-conflict-do-update/returning",
            "Delete": "DELETE /api/shop/item",
            "DeleteReturning": "DELETE /api/shop/item/returning",
        }
        assert tuple(endpoints(ITEM)) == NAMES

    def test_reading_and_deleting_use_the_query_string(self) -> None:
        by_query = {name for name, made in endpoints(ITEM).items() if made.transport is Transport.QUERY}
        assert by_query == {"Select", "Delete", "DeleteReturning"}

    def test_a_read_only_relation_has_a_select_only(self) -> None:
        assert set(endpoints(READ_ONLY)) == {"Select"}

    def test_a_table_without_a_key_has_neither_updates_nor_on_conflict(self) -> None:
        result = set(endpoints(replace(ITEM, key=())))
        assert result == {"Select", "Insert", "InsertReturning", "Delete", "DeleteReturning"}

    def test_a_deferrable_key_permits_no_on_conflict(self) -> None:
        assert not any("Conflict" in name for name in endpoints(replace(ITEM, key_decides=False)))

    def test_a_table_without_readable_columns_has_no_returning(self) -> None:
        blind = table(column("a", readable=False, filterable=False), key=(), deletable=True)
        assert set(endpoints(blind)) == {"Insert"}

    def test_a_table_of_key_columns_has_no_update(self) -> None:
        assert not any(name.startswith("Update") for name in endpoints(table(ID)))

    def test_generated_columns_are_read_and_not_written(self) -> None:
        result = endpoints(ITEM)
        names = {name: [item.api_name for item in result[name].parameters] for name in ("Select", "Insert", "Update")}
        assert names == {
            "Select": ["id", "Full Name", "sizeOf"],
            "Insert": ["id", "Full Name"],
            "Update": ["id", "Full Name"],
        }

    def test_only_inserts_require_columns(self) -> None:
        result = endpoints(ITEM)
        required = {name for name, made in result.items() if any(not item.has_default for item in made.parameters)}
        assert required == {name for name in NAMES if name.startswith("Insert")}

    def test_settings_select_operations_and_paths(self) -> None:
        defaults = TableDefaults(
            operations=frozenset({"Select", "DeleteReturning", "InsertOnConflictDoNothing"}),
            patterns={(None, True): "returned/{0}", (Conflict.NOTHING, False): "{0}/once"},
            url_path_prefix="",
        )
        assert [made.path for made in endpoints(ITEM, defaults=defaults).values()] == [
            "/shop/item",
            "/shop/item/once",
            "/returned/shop/item",
        ]


TAGS = [
    ("select", {"Select"}),
    ("read", {"Select"}),
    ("get", {"Select"}),
    ("update", {"Update", "UpdateReturning"}),
    ("post", {"Update", "UpdateReturning"}),
    ("update_returning", {"UpdateReturning"}),
    ("delete", {"Delete", "DeleteReturning"}),
    ("delete_returning", {"DeleteReturning"}),
    ("returning", {name for name in NAMES if name.endswith("Returning")}),
    ("insert", {name for name in NAMES if name.startswith("Insert")}),
    ("put", {name for name in NAMES if name.startswith("Insert")}),
    ("create", {name for name in NAMES if name.startswith("Insert")}),
    ("insert_returning", {"InsertReturning"}),
    ("on_conflict", {name for name in NAMES if "Conflict" in name}),
    ("on_conflict_do_nothing", {name for name in NAMES if "DoNothing" in name}),
    ("insert_on_conflict_do_nothing", {"InsertOnConflictDoNothing"}),
    ("insert_on_conflict_do_nothing_returning", {"InsertOnConflictDoNothingReturning"}),
    ("on_conflict_do_update", {name for name in NAMES if "DoUpdate" in name}),
    ("insert_on_conflict_do_update", {"InsertOnConflictDoUpdate"}),
    ("insert_on_conflict_do_update_returning", {"InsertOnConflictDoUpdateReturning"}),
]


@pytest.mark.parametrize(("tag", "names"), TAGS, ids=[tag for tag, _ in TAGS])
def test_a_tag_of_a_block_selects_its_operations(tag: str, names: set[str]) -> None:
    assert set(endpoints(ITEM, f"disabled\nenabled {tag}")) == names


def test_a_method_outside_a_block_applies_to_operations_that_support_it() -> None:
    """`HTTP GET /items` for all of them would let a GET delete."""
    assert set(endpoints(ITEM, "HTTP GET /items")) == {"Select"}
    assert set(endpoints(ITEM, "HTTP POST")) == {"Update", "UpdateReturning"}
    assert set(endpoints(ITEM, "HTTP DELETE")) == {"Delete", "DeleteReturning"}
    assert set(endpoints(ITEM, "HTTP GET\nHTTP PUT")) == {name for name in NAMES if name.startswith("Insert")}
    assert set(endpoints(ITEM, "HTTP GET\nfor delete\nHTTP")) == {"Select", "Delete", "DeleteReturning"}


def test_writing_operations_are_not_served_by_get() -> None:
    made = endpoints(ITEM, "HTTP\nfor update, insert, delete\nHTTP GET /items")
    assert {name for name, item in made.items() if item.method == "GET"} == {"Select"}


def test_of_operations_on_one_route_only_the_first_is_served() -> None:
    made = endpoints(ITEM, "HTTP POST /items").values()
    router, diagnostics = build_router(made)
    match = router.find("POST", "/items")
    assert match is not None
    assert [item.routine.identity for item in match.route.candidates] == ["shop.item (update)"]
    assert [str(item) for item in diagnostics] == [
        "shop.item: these operations are left out, as others of it have their method and path: POST /items (update "
        "returning); give them paths of their own in `for` blocks"
    ]


def test_operations_of_a_table_share_equal_objects() -> None:
    """They are created, sent to workers and stored in memory once."""
    made = endpoints(ITEM)
    assert made["Insert"].parameters is made["InsertOnConflictDoUpdateReturning"].parameters
    assert made["Select"].parameters is not made["Insert"].parameters
    assert made["Select"].shape.columns is made["DeleteReturning"].shape.columns
    assert made["Insert"].options is made["Update"].options


def test_tables_with_the_same_columns_keep_their_own_names_and_paths() -> None:
    first, second = endpoints(ITEM)["Insert"], endpoints(replace(ITEM, name="other"))["Insert"]
    assert (first.path, second.path) == ("/api/shop/item", "/api/shop/other")
    assert first.parameters == second.parameters
