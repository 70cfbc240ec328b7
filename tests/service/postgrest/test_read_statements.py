"""Statements of PostgREST's reads, executed: filters, embeds, spreads, aggregates, order, ranges.

Source: PostgREST's documentation, Tables and Views; Resource Embedding; Aggregate Functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import orjson
import psycopg
import pytest

from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.plan import read_plan
from rowcall.core.postgrest.relationships import relationships
from rowcall.core.postgrest.request.query_string import parse_query
from rowcall.core.postgrest.schema import Column, ForeignKey, Relation, Schema
from rowcall.core.postgrest.sql.output import Output
from rowcall.core.postgrest.sql.reads import read_statement
from tests.harness.database import Database

SQL = """
create schema api;
create table api.harbour (id int primary key, title text, country text);
create table api.vessel (id int primary key, label text not null, tonnage numeric, specs jsonb, built date,
    home_id int references api.harbour, tags text[]);
create table api.licence (vessel_id int primary key references api.vessel, code text);
create table api.voyage (id int primary key, vessel_id int references api.vessel,
    from_id int constraint voyage_from references api.harbour, to_id int constraint voyage_to references api.harbour,
    fare numeric);
create table api.sailor (id int primary key, nick text, boss_id int references api.sailor);
create table api.crew (voyage_id int references api.voyage, sailor_id int references api.sailor, duty text,
    primary key (voyage_id, sailor_id));
insert into api.harbour values (1, 'Oslo', 'NO'), (2, 'Riga', 'LV');
insert into api.vessel values (1, 'Skua', 5000, '{"beam": "12", "a": {"b": 2}}', '1990-05-01', 1, '{x,y}'),
    (2, 'Tern', 80, null, null, null, null), (3, 'Doe, J', 7, '{"a": [1, 2]}', null, 2, '{}');
insert into api.licence values (1, 'N-77');
insert into api.voyage values (1, 1, 1, 2, 500), (2, 1, 2, 1, 300), (3, 1, 1, 1, 140), (4, 2, 1, 2, 80);
insert into api.sailor values (1, 'ann', null), (2, 'bob', 1), (3, 'cat', 1);
insert into api.crew values (1, 1, 'mate'), (1, 2, 'cook'), (4, 3, null);
"""
COLUMNS = {
    "harbour": "id:integer title:text country:text",
    "vessel": "id:integer label:text tonnage:numeric specs:jsonb built:date home_id:integer tags:text[]",
    "licence": "vessel_id:integer code:text",
    "voyage": "id:integer vessel_id:integer from_id:integer to_id:integer fare:numeric",
    "sailor": "id:integer nick:text boss_id:integer",
    "crew": "voyage_id:integer sailor_id:integer duty:text",
}
PRIMARY = {"licence": ("vessel_id",), "crew": ("voyage_id", "sailor_id")}
FOREIGN = (
    ("vessel_home_id_fkey", "vessel", "home_id", "harbour", "id", False),
    ("licence_vessel_id_fkey", "licence", "vessel_id", "vessel", "id", True),
    ("voyage_vessel_id_fkey", "voyage", "vessel_id", "vessel", "id", False),
    ("voyage_from", "voyage", "from_id", "harbour", "id", False),
    ("voyage_to", "voyage", "to_id", "harbour", "id", False),
    ("sailor_boss_id_fkey", "sailor", "boss_id", "sailor", "id", False),
    ("crew_voyage_id_fkey", "crew", "voyage_id", "voyage", "id", False),
    ("crew_sailor_id_fkey", "crew", "sailor_id", "sailor", "id", False),
)


def _schema() -> Schema:
    relations = {
        ("api", name): Relation(
            "api",
            name,
            tuple(Column(column, type_, type_) for column, type_ in (pair.split(":") for pair in columns.split())),
            PRIMARY.get(name, ("id",)),
        )
        for name, columns in COLUMNS.items()
    }
    keys = [
        ForeignKey(name, ("api", origin), (column,), ("api", target), (target_column,), unique)
        for name, origin, column, target, target_column, unique in FOREIGN
    ]
    return Schema(relations, relationships(relations, keys, exposed=("api",)))


SCHEMA = _schema()


@pytest.fixture(scope="module")
def connection(database: Database) -> Iterator[psycopg.Connection]:
    database.execute(SQL)
    with psycopg.connect(database.conninfo, autocommit=True) as result:
        yield result


def read(connection: psycopg.Connection, table: str, query: str, **options: Any) -> tuple[Any, ...]:
    """Return total, number of rows and body."""
    plan = read_plan(SCHEMA, ("api", table), parse_query(query), aggregates=True)
    statement = read_statement(SCHEMA, plan, **options)
    with psycopg.RawCursor(connection) as cursor:
        row = cursor.execute(statement.sql.encode(), statement.parameters).fetchone()
    assert row is not None
    return row[:3]


@pytest.mark.parametrize(
    ("table", "query", "body"),
    [
        ("vessel", "select=id&id=eq.1", [{"id": 1}]),
        ("vessel", "select=id&or=(tonnage.gte.5000,and(label.like.T*,id.lt.9))&order=id", [{"id": 1}, {"id": 2}]),
        ("vessel", 'select=id&label=in.("Doe, J",x)', [{"id": 3}]),
        ("vessel", "select=id&id=in.()", []),
        ("vessel", "select=id&id=not.in.()&order=id", [{"id": 1}, {"id": 2}, {"id": 3}]),
        ("vessel", "select=id&home_id=is.null", [{"id": 2}]),
        ("vessel", "select=id&home_id=is.NOT_NULL&order=id.desc", [{"id": 3}, {"id": 1}]),
        ("vessel", "select=id&id=not.eq.1&order=id", [{"id": 2}, {"id": 3}]),
        ("vessel", "select=id&home_id=isdistinct.1&order=id", [{"id": 2}, {"id": 3}]),
        ("vessel", "select=id&tags=cs.{x}", [{"id": 1}]),
        ("vessel", "select=id&label=like(any).{S*,T*}&order=id", [{"id": 1}, {"id": 2}]),
        ("vessel", "select=id&id=eq(any).{1,3}&order=id", [{"id": 1}, {"id": 3}]),
        ("vessel", "select=id&label=match.^S", [{"id": 1}]),
        ("vessel", "select=id&label=fts(english).skua", [{"id": 1}]),
        ("vessel", "select=id&label=plfts.skua", [{"id": 1}]),
        ("vessel", "select=id&specs->>beam=eq.12", [{"id": 1}]),
        ("vessel", "select=id&specs->a=eq.{\"b\":2}", [{"id": 1}]),
        ("vessel", "select=specs->a->b,specs->a->1&id=eq.1", [{"b": 2, "a": None}]),
        ("vessel", "select=specs->a->1&id=eq.3", [{"a": 2}]),
        ("vessel", "select=tags->0&id=eq.1", [{"tags": "x"}]),
        ("vessel", "select=name:label,t:tonnage::text&id=eq.2", [{"name": "Tern", "t": "80"}]),
        ("vessel", "select=id,harbour(title)&order=id", [
            {"id": 1, "harbour": {"title": "Oslo"}}, {"id": 2, "harbour": None},
            {"id": 3, "harbour": {"title": "Riga"}}]),
        ("vessel", "select=id,harbour!inner(title)&harbour.title=eq.Riga", [{"id": 3, "harbour": {"title": "Riga"}}]),
        ("vessel", "select=id,home:home_id(title)&id=eq.1", [{"id": 1, "home": {"title": "Oslo"}}]),
        ("vessel", "select=id,licence(code)&id=lt.3&order=id",
         [{"id": 1, "licence": {"code": "N-77"}}, {"id": 2, "licence": None}]),
        ("vessel", "select=id,voyage(fare)&voyage.order=fare&voyage.limit=2&order=id", [
            {"id": 1, "voyage": [{"fare": 140}, {"fare": 300}]}, {"id": 2, "voyage": [{"fare": 80}]},
            {"id": 3, "voyage": []}]),
        ("vessel", "select=id,voyage!inner(id)&voyage.fare=gt.400", [{"id": 1, "voyage": [{"id": 1}]}]),
        ("vessel", "select=id,voyage()&voyage=is.null", [{"id": 3}]),
        ("vessel", "select=id,voyage()&voyage=not.is.null&voyage.fare=gt.400", [{"id": 1}]),
        ("vessel", "select=id,voyage()&or=(voyage.is.null,label.eq.Tern)&order=id", [{"id": 2}, {"id": 3}]),
        ("vessel", "select=label,...licence(code),...voyage(fares:fare)&voyage.order=fare.desc&id=eq.1",
         [{"label": "Skua", "code": "N-77", "fares": [500, 300, 140]}]),
        ("vessel", "select=id,...voyage(fare)&id=eq.3", [{"id": 3, "fare": []}]),
        ("vessel", "select=id,...licence(code)&id=eq.3", [{"id": 3, "code": None}]),
        ("voyage", "select=id,start:harbour!voyage_from(title),finish:harbour!to_id(title)&id=eq.1",
         [{"id": 1, "start": {"title": "Oslo"}, "finish": {"title": "Riga"}}]),
        ("voyage", "select=id,sailor(nick)&sailor.order=nick&id=eq.1",
         [{"id": 1, "sailor": [{"nick": "ann"}, {"nick": "bob"}]}]),
        ("voyage", "select=id,crew(duty,...sailor(nick))&id=eq.4",
         [{"id": 4, "crew": [{"duty": None, "nick": "cat"}]}]),
        ("sailor", "select=nick,reports:sailor(nick)&reports.order=nick&id=eq.1",
         [{"nick": "ann", "reports": [{"nick": "bob"}, {"nick": "cat"}]}]),
        ("sailor", "select=nick,boss_id(nick)&id=eq.2", [{"nick": "bob", "boss_id": {"nick": "ann"}}]),
        ("voyage", "select=vessel_id,total:fare.sum(),trips:count()&order=vessel_id", [
            {"vessel_id": 1, "total": 940, "trips": 3}, {"vessel_id": 2, "total": 80, "trips": 1}]),
        ("voyage", "select=...vessel(label,fare_count:count())&order=vessel(label)", [
            {"label": "Skua", "fare_count": 3}, {"label": "Tern", "fare_count": 1}]),
        ("vessel", "select=id,voyage(fare.sum())&order=id", [
            {"id": 1, "voyage": [{"sum": 940}]}, {"id": 2, "voyage": [{"sum": 80}]},
            {"id": 3, "voyage": [{"sum": None}]}]),
        ("vessel", "select=id,harbour(title)&order=harbour(title).desc.nullslast&limit=1",
         [{"id": 3, "harbour": {"title": "Riga"}}]),
        ("vessel", "select=id&order=id&limit=1&offset=1", [{"id": 2}]),
    ],
)  # fmt: skip
def test_rows_of_a_read(connection: psycopg.Connection, table: str, query: str, body: Any) -> None:
    assert orjson.loads(read(connection, table, query)[2]) == body


def test_text_of_the_body_is_that_of_postgresql(connection: psycopg.Connection) -> None:
    assert read(connection, "vessel", "select=id,label&id=lt.3&order=id")[2] == (
        '[{"id":1,"label":"Skua"}, \n {"id":2,"label":"Tern"}]'
    )


def test_counts_apply_filters_and_inner_joins_but_no_range(connection: psycopg.Connection) -> None:
    query = "select=id,harbour!inner(title)&limit=1&id=gt.0"
    assert read(connection, "vessel", query, count=True)[:2] == ("2", "1")


@pytest.mark.parametrize(
    ("query", "embeds"),
    [
        ("select=id,harbour(title),voyage(id)", 0),
        ("select=id,harbour!inner(title),voyage(id)", 1),
        ("select=id,harbour(title),voyage()&voyage=is.null", 1),
        ("select=id,port:harbour(title),voyage()&or=(id.eq.1,and(port.not.is.null,id.eq.2))", 1),
        ("select=id,voyage!inner(id,crew(duty),licence:crew!inner(duty))", 2),
        ("select=id,harbour(title),home_id&home_id=is.null&order=harbour(title)", 0),
    ],
)
def test_rows_are_counted_with_the_embeds_that_drop_some(query: str, embeds: int) -> None:
    # PostgreSQL reads a lateral join for each row, but not an EXISTS.
    plan = read_plan(SCHEMA, ("api", "vessel"), parse_query(query), max_rows=1000)
    counted = read_statement(SCHEMA, plan, count=True).sql.partition("pgrst_count AS (")[2]
    assert (counted.count(" JOIN "), counted.count("EXISTS")) == (0, embeds)


def nested(depth: int, embed: str, *conditions: str) -> str:
    """Return a query of embeds within embeds. conditions: of each level, with its embed as `{0}`."""
    names = ["voyage", "vessel"] * depth
    select = "id"
    for name in reversed(names[:depth]):
        select = f"id,{embed.format(name)}({select})"
    paths = [".".join(names[:level]) for level in range(depth)]
    filters = (
        f"&{path}{'.' if path else ''}{condition.format(name)}"
        for path, name in zip(paths, names, strict=False)
        for condition in conditions
    )
    return f"select={select}{''.join(filters)}"


@pytest.mark.parametrize(
    ("embed", "conditions"),
    [
        ("{}!inner", ()),
        ("{}!inner", ("{}=not.is.null",)),
        ("{}!inner", ("id=gt.0", "{}=not.is.null", "{}=not.is.null", "or=({}.not.is.null,id.eq.1)")),
        ("{}!inner", ("{}=is.null", "{}=is.null")),
        ("{}", ("or=({}.is.null,id.eq.1)",)),
        ("{}", ("or=({0}.is.null,{0}.not.is.null,and({0}.is.null,id.eq.1))", "not.or=({}.is.null)")),
    ],
)
def test_the_text_of_a_count_grows_linearly_with_the_depth(embed: str, conditions: tuple[str, ...]) -> None:
    def size(depth: int) -> tuple[int, int]:
        plan = read_plan(SCHEMA, ("api", "vessel"), parse_query(nested(depth, embed, *conditions)))
        counted = read_statement(SCHEMA, plan, count=True).sql.partition("pgrst_count AS (")[2]
        return len(counted), counted.count("EXISTS")

    sizes = [size(depth) for depth in range(1, 13)]
    assert [tests for _, tests in sizes[7:]] == [8, 9, 10, 11, 12]
    growth = [longer[0] - shorter[0] for shorter, longer in pairwise(sizes[7:])]
    assert max(growth) - min(growth) < 60  # the names of the two relations and digits of placeholders
    assert all(length < 1000 * depth and tests < 8 for depth, (length, tests) in enumerate(sizes[:7], 1))


@pytest.mark.parametrize("repeated", [0, 6], ids=["few tests", "many tests"])
@pytest.mark.parametrize(
    ("query", "total"),
    [
        ("select=id,voyage()&or=(voyage.is.null,id.eq.2)", 2),
        ("select=id,voyage()&or=(and(voyage.is.null,id.eq.3),and(voyage.not.is.null,id.eq.1))", 2),
        ("select=id,voyage!inner()&or=(voyage.is.null,id.eq.2)", 1),
        ("select=id,voyage!inner()&voyage=not.is.null&voyage=not.is.null", 2),
        ("select=id,voyage!inner()&voyage=is.null", 0),
        ("select=id,voyage()&voyage=is.null&not.and=(voyage.is.null,id.eq.3)", 0),
        ("select=id,voyage(crew())&voyage.crew=is.null&not.and=(voyage.is.null,voyage.is.null,id.eq.3)", 2),
        ("select=id,voyage()&voyage.offset=2&or=(voyage.not.is.null,and(voyage.is.null,id.eq.3))", 2),
        ("select=id,a:voyage!inner(vessel!inner()),b:voyage(id)&b.fare=gt.300&b=not.is.null", 1),
    ],
)
def test_totals_are_those_of_the_rows(connection: psycopg.Connection, query: str, total: int, repeated: int) -> None:
    select, *filters = query.split("&")
    for number in range(repeated):
        select += f",r{number}:voyage()"
        filters.append(f"or=(r{number}.is.null,r{number}.not.is.null)")
    assert read(connection, "vessel", "&".join((select, *filters)), count=True)[:2] == (str(total), str(total))


@pytest.mark.parametrize("depth", [1, 4, 7, 8, 12])
def test_totals_of_nested_embeds(connection: psycopg.Connection, depth: int) -> None:
    connection.execute("set statement_timeout = '20s'")
    for embed, conditions, total in (
        ("{}!inner", ("{}=not.is.null",), "2"),
        ("{}", ("or=({0}.is.null,{0}.not.is.null,and({0}.is.null,id.eq.1))",), "3"),
    ):
        assert read(connection, "vessel", nested(depth, embed, *conditions), count=True)[0] == total


def test_many_inner_embeds_are_counted(connection: psycopg.Connection) -> None:
    connection.execute("set statement_timeout = '20s'")
    names = ",".join(f"a{number}:voyage!inner(crew!inner())" for number in range(30))
    assert read(connection, "vessel", f"select={names}", count=True)[0] == "2"


def test_csv(connection: psycopg.Connection) -> None:
    assert (
        read(connection, "vessel", "select=id,label&order=id&id=gt.1", output=Output("csv"))[2]
        == 'id,label\n2,Tern\n3,"Doe, J"'
    )


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("select=id,harbour(title)", 300, "PGRST201"),
        ("select=id,harbor(title)", 400, "PGRST200"),
        ("x.id=eq.1", 400, "PGRST108"),
        ("select=id,crew(duty)&order=crew(duty)", 400, "PGRST118"),
        ("select=id,...crew(duty.count())", 400, "PGRST127"),
    ],
)
def test_names_that_cannot_be_resolved(query: str, status: int, code: str) -> None:
    with pytest.raises(ApiError) as caught:
        read_plan(SCHEMA, ("api", "voyage"), parse_query(query), aggregates=True)
    assert (caught.value.status, caught.value.code) == (status, code)


def test_ambiguity_names_the_candidates() -> None:
    with pytest.raises(ApiError) as caught:
        read_plan(SCHEMA, ("api", "voyage"), parse_query("select=id,harbour(title)"))
    assert caught.value.hint == (
        "Try changing 'harbour' to one of the following: 'harbour!voyage_from', 'harbour!voyage_to'. "
        "Find the desired relationship in the 'details' key."
    )
    assert caught.value.details[0] == {
        "cardinality": "many-to-one",
        "embedding": "voyage with harbour",
        "relationship": "voyage_from using voyage(from_id) and harbour(id)",
    }
