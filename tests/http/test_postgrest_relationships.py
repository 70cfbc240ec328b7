"""Relationships of PostgREST's interface: which exist, how a query names them, and what an embed returns.

Source: PostgREST's documentation, Resource Embedding; Computed Fields.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.postgrest import PLAIN, Case, create_roles, error
from tests.harness.service import Service
from tests.http.conftest import Serve

LONG = "a" * 62
"""A name to which no longer suffix can be added: PostgreSQL's identifiers have at most 63 bytes."""
SQL = """
create schema api; create schema depot; create schema hidden; create schema extra;
create table api.harbour (id int primary key, title text);
create table api.person (id int primary key, name text, boss_id int constraint person_boss references api.person);
create table api.vessel (id int primary key, label text, home_id int constraint vessel_home references api.harbour,
                         owner_id int, note text);
create table api.licence (id int primary key, code text, vessel_id int unique constraint licence_vessel references api.vessel);
create table api.permit (id int primary key, vessel_id int constraint permit_vessel references api.vessel);
create unique index on api.permit (vessel_id);
create table api.route (id int primary key, vessel_id int references api.vessel,
                        from_id int constraint route_from references api.harbour,
                        to_id int constraint route_to references api.harbour);
create table api.seal (id int primary key, one_id int unique constraint seal_one references api.vessel,
                       two_id int unique constraint seal_two references api.vessel);
create table api.tag (id int primary key, word text);
create table api.vessel_tag (vessel_id int constraint vt_vessel references api.vessel,
                             tag_id int constraint vt_tag references api.tag, primary key (vessel_id, tag_id));
create table api.vessel_mark (vessel_id int constraint vm_vessel references api.vessel,
                              tag_id int constraint vm_tag references api.tag, primary key (vessel_id, tag_id));
create table api.word (id int primary key);
create table api.loose (id int primary key, person_id int references api.person, word_id int references api.word);
create table api.friend (one_id int constraint friend_one references api.person,
                         two_id int constraint friend_two references api.person, primary key (one_id, two_id));
create table api.slot (a int, b int, label text, primary key (a, b));
create table api.slot_use (id int primary key, x int, y int, constraint use_of foreign key (y, x) references api.slot (b, a));
create table api.slot_note (b int, a int, note text, primary key (b, a),
                            constraint note_of foreign key (a, b) references api.slot (a, b));
create table api.log (id int, at date, vessel_id int constraint log_vessel references api.vessel) partition by range (at);
create table api.log_2020 partition of api.log for values from ('2020-01-01') to ('2021-01-01');
create table api.secret (id int primary key, vessel_id int references api.vessel);
create table depot.crate (id int primary key, vessel_id int references api.vessel);
create table hidden.link (tag_id int references api.tag, harbour_id int references api.harbour, primary key (tag_id, harbour_id));
create table hidden.bond (person_id int references api.person, harbour_id int references api.harbour,
                          primary key (person_id, harbour_id));
create view api.links as select tag_id, harbour_id from hidden.link;
create view api.harbours as select id as number, title as name from api.harbour;
create view api.vessels as select id as number, label, home_id as port from api.vessel;
create view api.in_cte as with x as (select id, label, home_id from api.vessel) select * from x;
create view api.in_from as select * from (select id, home_id from api.vessel) x;
create view api.grouped as select home_id, count(*) as vessels from api.vessel group by home_id;
create view api.computed as select id + 0 as id, coalesce(home_id, 0) as home_id from api.vessel;
create view api.twice as select id, home_id, home_id as again from api.vessel;
create view extra.base as select id, home_id from api.vessel; create view api.over_extra as select * from extra.base;
create view hidden.base as select id, home_id from api.vessel; create view api.over_hidden as select * from hidden.base;
create materialized view api.stored as select id, label, home_id from api.vessel;
create function api.owner(api.vessel) returns api.person stable language sql as
  'select * from api.person where id = $1.owner_id';
create function api.visits(api.harbour) returns setof api.route stable language sql as
  'select * from api.route where to_id = $1.id';
create function api.first_visit(api.harbour) returns setof api.route rows 1 stable language sql as
  'select * from api.route where to_id = $1.id order by id limit 1';
create function api.permit(api.vessel) returns setof api.permit stable language sql as
  'select * from api.permit where vessel_id <> $1.id';
create function api.crates(api.vessel) returns setof depot.crate stable language sql as
  'select * from depot.crate where vessel_id = $1.id';
create function depot.nearby(api.vessel) returns setof depot.crate stable language sql as 'select * from depot.crate';
create function api.bases(api.vessel) returns setof extra.base stable language sql as 'select * from extra.base';
create function extra.elsewhere(api.vessel) returns setof api.tag stable language sql as 'select * from api.tag';
create table hidden.vessel (id int primary key, home_id int); insert into hidden.vessel values (7, 2);
create type api.pair as (a int, b int); create type hidden.vessels as (number int, port int);
create function api.hidden_vessels() returns setof hidden.vessel stable language sql as 'select * from hidden.vessel';
create function api.by_view() returns setof hidden.vessels stable language sql as 'select 7, 2';
create function api.pairs() returns setof api.pair stable language sql as 'select 1, 2';
create function api.columns() returns table (id int, home_id int) stable language sql as 'select 1, 2';
create function api.number() returns int stable language sql as 'select 1';
create function api.crates() returns setof depot.crate stable language sql as 'select * from depot.crate';
create function api.all_vessels() returns setof api.vessel stable language sql as 'select * from api.vessel order by id';
create table api.buyer (id int primary key, place_1 text);
create table api.place (id int primary key, buyer_id int references api.buyer, place_1 text, place_2 text, buyer_1 text);
create table api.place_1 (id int primary key, place_id int references api.place);
create function api.first_place(api.buyer) returns api.place stable language sql as
  'select * from api.place where buyer_id = $1.id limit 1';
insert into api.buyer values (1, 'x'), (2, 'y'); insert into api.place values (1, 1, 'a', 'b', null);
insert into api.place_1 values (1, 1);
create table api.{LONG} (id int primary key, above_id int references api.{LONG});
create table api.{LONG}_ (long_id int references api.{LONG}, harbour_id int references api.harbour,
                          primary key (long_id, harbour_id));
insert into api.harbour values (1, 'Oslo'), (2, 'Riga'), (3, 'Kiel');
insert into api.person values (1, 'ann', null), (2, 'bob', 1), (3, 'cid', 1);
insert into api.vessel values (1, 'Skua', 1, 2, null), (2, 'Tern', 2, 1, 'old'), (3, 'Gull', null, null, null), (4, 'Auk', 1, 3, 'x');
insert into api.licence values (1, null, 1), (2, 'B', 2); insert into api.permit values (1, 1), (2, 2);
insert into api.route values (1, 1, 1, 2), (2, 1, 2, 1), (3, 2, 2, 3); insert into api.seal values (1, 1, 2);
insert into api.tag values (1, 'fast'), (2, 'old'); insert into api.vessel_tag values (1, 1), (1, 2); insert into api.vessel_mark values (2, 2);
insert into api.friend values (1, 2), (1, 3); insert into api.slot values (1, 2, 'p'), (2, 1, 'q');
insert into api.slot_use values (1, 1, 2), (2, null, 1); insert into api.slot_note values (2, 1, 'n');
insert into api.log values (1, '2020-05-05', 1); insert into depot.crate values (1, 1); insert into hidden.link values (1, 3);
insert into api.{LONG} values (1, null), (2, 1), (3, 2); insert into api.{LONG}_ values (3, 1);
refresh materialized view api.stored;
""".replace("{LONG}", LONG)  # noqa: E501 (each line is one object)


@pytest.fixture(scope="module")
def settings(database: Database) -> dict[str, str]:
    database.execute(SQL)
    (anonymous,) = create_roles(database, "anon")
    database.execute(
        f"grant usage on schema api, depot, hidden to {anonymous};"
        f"grant select on all tables in schema api, depot, hidden to {anonymous};"
        f"revoke all on api.secret from {anonymous}"
    )
    return {
        **PLAIN,
        "PostgRest:Schemas": "api, depot",
        "PostgRest:ExtraSearchPath": "extra",
        "PostgRest:AnonymousRole": anonymous,
        "PostgRest:AggregatesEnabled": "true",
    }


@pytest.fixture(scope="module")
def service(serve: Serve, database: Database, settings: dict[str, str]) -> Service:
    return serve(database, settings=settings)


@pytest.fixture(scope="module")
def strict_service(serve: Serve, database: Database, settings: dict[str, str]) -> Service:
    return serve(database, settings={**settings, "PostgRest:UrlUseLegacyTargetNames": "false"})


def none(origin: str, target: str, sent: str | None = None, schema: str = "api", **others: Any) -> Any:
    """The error of a target that no relationship fits. sent: the hint of the request."""
    using = "" if sent is None else f" using the hint '{sent}'"
    return error(
        "PGRST200",
        f"Could not find a relationship between '{origin}' and '{target}' in the schema cache",
        details=f"Searched for a foreign key relationship between '{origin}' and '{target}'{using} in the schema "
        f"'{schema}', but no matches were found.",
        **others,
    )


def ambiguous(origin: str, target: str, cardinality: str, *relationships: str) -> Any:
    """The error of a target that several relationships fit. relationships: as the details name them; their first word
    is the hint."""
    hints = ", ".join(f"'{target}!{relationship.split()[0]}'" for relationship in relationships)
    return error(
        "PGRST201",
        f"Could not embed because more than one relationship was found for '{origin}' and '{target}'",
        details=[
            {"cardinality": cardinality, "embedding": f"{origin} with {target}", "relationship": relationship}
            for relationship in relationships
        ],
        hint=f"Try changing '{target}' to one of the following: {hints}. "
        "Find the desired relationship in the 'details' key.",
    )


OSLO = {"title": "Oslo"}
DEPOT = {"accept-profile": "depot"}


@pytest.mark.parametrize(
    "case",
    [
        # one-to-one: constraints count, bare unique indexes do not; the order of columns does not matter
        Case("GET /vessel?select=licence(id)&id=eq.1", json=[{"licence": {"id": 1}}]),
        Case("GET /licence?select=vessel(id)&id=eq.1", json=[{"vessel": {"id": 1}}]),
        Case("GET /slot?select=slot_note(note)&order=a", json=[{"slot_note": {"note": "n"}}, {"slot_note": None}]),
        Case("GET /slot_note?select=slot(label)", json=[{"slot": {"label": "p"}}]),
        # composite keys
        Case("GET /slot_use?select=slot(label)&order=id", json=[{"slot": {"label": "p"}}, {"slot": None}]),
        Case("GET /slot?select=slot_use(id)&order=a", json=[{"slot_use": [{"id": 1}]}, {"slot_use": []}]),
        # many-to-many: the keys are part of the primary key, and the schema of the junction is exposed
        Case("GET /harbour?select=tag(word)&id=eq.3", json=[{"tag": [{"word": "fast"}]}]),
        Case("GET /tag?select=harbour(id)&id=eq.1", json=[{"harbour": [{"id": 3}]}]),
        Case("GET /harbour?select=person(name)&id=eq.1", 400, none("harbour", "person")),
        Case("GET /word?select=person(name)", 400, none("word", "person")),
        # partitioned tables
        Case("GET /log?select=vessel(label)", json=[{"vessel": {"label": "Skua"}}]),
        Case("GET /vessel?select=log(id)&id=eq.1", json=[{"log": [{"id": 1}]}]),
        Case("GET /vessel?select=log_2020(id)&id=eq.1", 400, none("vessel", "log_2020")),
        # another schema
        Case("GET /vessel?select=crate(id)&id=eq.1", 400, none("vessel", "crate")),
        Case("GET /crate?select=vessel(id)", 400, none("crate", "vessel", schema="depot"), headers=DEPOT),
        Case("GET /crate?select=vesse(id)", 400, none("crate", "vesse", schema="depot", hint=None), headers=DEPOT),
        # privileges are those of the execution
        Case("GET /vessel?select=secret(id)", 401, error("42501"), has={"www-authenticate": "Bearer"}),
        # views
        Case("GET /vessels?select=harbour(title)&number=eq.1", json=[{"harbour": OSLO}]),
        Case("GET /vessels?select=harbours(name)&number=eq.1", json=[{"harbours": {"name": "Oslo"}}]),
        Case("GET /harbours?select=vessels(label)&number=eq.2", json=[{"vessels": [{"label": "Tern"}]}]),
        Case("GET /harbour?select=vessels(number)&id=eq.2", json=[{"vessels": [{"number": 2}]}]),
        Case("GET /in_cte?select=harbour(title)&id=eq.1", json=[{"harbour": OSLO}]),
        Case("GET /in_from?select=harbour(title)&id=eq.1", json=[{"harbour": OSLO}]),
        Case("GET /grouped?select=vessels,harbour(title)&home_id=eq.1", json=[{"vessels": 2, "harbour": OSLO}]),
        Case("GET /computed?select=harbour(title)", 400, none("computed", "harbour")),
        Case("GET /over_extra?select=harbour(title)&id=eq.1", json=[{"harbour": OSLO}]),
        Case("GET /over_hidden?select=harbour(title)", 400, none("over_hidden", "harbour")),
        Case("GET /stored?select=harbour(title)&id=eq.1", json=[{"harbour": OSLO}]),
        Case("GET /harbour?select=stored(label)&id=eq.2", json=[{"stored": [{"label": "Tern"}]}]),
        Case(
            "GET /twice?select=harbour(title)",
            300,
            ambiguous(
                "twice",
                "harbour",
                "many-to-one",
                "vessel_home using twice(again) and harbour(id)",
                "vessel_home using twice(home_id) and harbour(id)",
            ),
        ),
        # the name of the target
        Case("GET /route?select=start:route_from(title)&id=eq.1", json=[{"start": OSLO}]),
        Case("GET /harbour?select=route_from(id)&id=eq.1", json=[{"route_from": [{"id": 1}]}]),
        Case("GET /vessels?select=vessel_home(title)&number=eq.1", json=[{"vessel_home": OSLO}]),
        Case("GET /vessels?select=port(title)&number=eq.1", json=[{"port": OSLO}]),
        # the hint: constraint, a column at either end, junction
        Case("GET /route?select=harbour!route_from(title)&id=eq.1", json=[{"harbour": OSLO}]),
        Case("GET /route?select=harbour!from_id(title)&id=eq.1", json=[{"harbour": OSLO}]),
        Case("GET /vessel?select=harbour!id(title)&id=eq.1", json=[{"harbour": OSLO}]),
        Case("GET /harbour?select=vessel!home_id(id)&id=eq.2", json=[{"vessel": [{"id": 2}]}]),
        Case("GET /harbour?select=vessel!id(id)&id=eq.2", json=[{"vessel": [{"id": 2}]}]),
        Case("GET /vessel?select=tag!vessel_tag(id)&tag.order=id&id=eq.1", json=[{"tag": [{"id": 1}, {"id": 2}]}]),
        Case("GET /vessel?select=tag!vessel_mark(id)&id=eq.2", json=[{"tag": [{"id": 2}]}]),
        Case("GET /vessel?select=tag!vt_tag(id)", 400, none("vessel", "tag", "vt_tag")),
        Case("GET /slot_use?select=slot!x(label)", 400, none("slot_use", "slot", "x")),
        Case("GET /slot_use?select=slot!use_of(label)&id=eq.1", json=[{"slot": {"label": "p"}}]),
        # self references: the own name is the children, the column is the parent
        Case("GET /person?select=reports:person(id)&id=eq.1", json=[{"reports": [{"id": 2}, {"id": 3}]}]),
        Case("GET /person?select=boss_id(name)&id=eq.2", json=[{"boss_id": {"name": "ann"}}]),
        Case("GET /person?select=reports:person!boss_id(id)&id=eq.1", json=[{"reports": [{"id": 2}, {"id": 3}]}]),
        Case("GET /person?select=person!person_boss(id)", 400, none("person", "person", "person_boss", hint=None)),
        Case("GET /person?select=person!id(id)", 400, none("person", "person", "id")),
        Case("GET /person?select=person_boss(id)", 400, none("person", "person_boss")),
        Case("GET /person?select=person!friend(id)", 400, none("person", "person", "friend")),
        Case(
            "GET /person?select=friend!friend_one(...person!friend_two(name))&friend.order=two_id&id=eq.1",
            json=[{"friend": [{"name": "bob"}, {"name": "cid"}]}],
        ),
        # ambiguity, by cardinality
        Case(
            "GET /harbour?select=route(id)",
            300,
            ambiguous(
                "harbour",
                "route",
                "one-to-many",
                "route_from using harbour(id) and route(from_id)",
                "route_to using harbour(id) and route(to_id)",
            ),
        ),
        Case(
            "GET /seal?select=vessel(id)",
            300,
            ambiguous(
                "seal",
                "vessel",
                "one-to-one",
                "seal_one using seal(one_id) and vessel(id)",
                "seal_two using seal(two_id) and vessel(id)",
            ),
        ),
        Case(
            "GET /vessel?select=tag(id)",
            300,
            ambiguous(
                "vessel",
                "tag",
                "many-to-many",
                "vessel_mark using vm_vessel(vessel_id) and vm_tag(tag_id)",
                "vessel_tag using vt_vessel(vessel_id) and vt_tag(tag_id)",
            ),
        ),
        # computed
        Case("GET /vessel?select=owner(name)&id=gte.3&order=id", json=[{"owner": None}, {"owner": {"name": "cid"}}]),
        Case("GET /harbour?select=visits(id)&order=id&id=gt.1", json=[{"visits": [{"id": 1}]}, {"visits": [{"id": 3}]}]),  # noqa: E501
        Case("GET /harbour?select=first_visit(id)&id=eq.2", json=[{"first_visit": {"id": 1}}]),
        Case("GET /vessel?select=permit(id)&id=eq.1", json=[{"permit": [{"id": 2}]}]),
        Case("GET /permit?select=vessel(id)&id=eq.1", json=[{"vessel": {"id": 1}}]),
        Case("GET /vessel?select=crates(id)&id=eq.1", json=[{"crates": [{"id": 1}]}]),
        Case("GET /vessel?select=elsewhere(id)", 400, none("vessel", "elsewhere")),
        Case("GET /vessel?select=nearby(id)", 400, none("vessel", "nearby")),
        Case("GET /vessel?select=bases(id)", 400, none("vessel", "bases")),
        Case("GET /vessel?select=id,owner!inner(name)&owner.name=eq.cid", json=[{"id": 4, "owner": {"name": "cid"}}]),
        Case("GET /vessel?select=...owner(name)&id=eq.1", json=[{"name": "bob"}]),
        Case("GET /vessel?select=owner!x(name)&id=eq.1", json=[{"owner": {"name": "bob"}}]),
        Case("GET /vessel?select=id,owner(name)&order=owner(name)&limit=1", json=[{"id": 2, "owner": {"name": "ann"}}]),
        Case(
            "GET /vessel?select=id,owner!inner()&limit=1&order=id",
            206,
            [{"id": 1}],
            headers={"prefer": "count=exact"},
            has={"content-range": "0-0/3"},
        ),
        # results of functions: relationships of the relation with the name of their type in the schema of the function
        Case("GET /rpc/hidden_vessels?select=id,harbour(title)", json=[{"id": 7, "harbour": {"title": "Riga"}}]),
        Case("GET /rpc/by_view?select=number,port(title)", json=[{"number": 7, "port": {"title": "Riga"}}]),
        Case("GET /rpc/pairs?select=harbour(title)", 400, none("pair", "harbour")),
        Case("GET /rpc/columns?select=harbour(title)", 400, none("record", "harbour")),
        Case("GET /rpc/number?select=harbour(title)", 400, none("number", "harbour")),
        Case("GET /rpc/crates?select=vessel(id)", 400, none("crate", "vessel")),
        # long names
        Case(
            f"GET /{LONG}?select=id,above_id(id,above_id(id))&id=eq.3",
            json=[{"id": 3, "above_id": {"id": 2, "above_id": {"id": 1}}}],
        ),
        Case(
            f"GET /{LONG}?select={LONG}(id,{LONG}(id,harbour(id)))&id=eq.1",
            json=[{LONG: [{"id": 2, LONG: [{"id": 3, "harbour": [{"id": 1}]}]}]}],
        ),
        Case(f"GET /harbour?select={LONG}(id)&id=eq.1", json=[{LONG: [{"id": 3}]}]),
        Case("GET /rpc/all_vessels?select=owner(name),harbour(title)&limit=1", json=[{"owner": {"name": "bob"}, "harbour": OSLO}]),  # noqa: E501
    ],
    ids=str,
)  # fmt: skip
def test_relationships(service: Service, case: Case) -> None:
    case.check(service.client)


@pytest.mark.parametrize(
    "case",
    [
        # the text of embeds: behind plain columns, as jsonb
        Case("GET /vessel?select=harbour(title),id&id=eq.1", text='[{"id":1,"harbour":{"title": "Oslo"}}]'),
        Case(
            "GET /vessel?select=licence(id),harbour(id),id&id=eq.1",
            text='[{"id":1,"licence":{"id": 1},"harbour":{"id": 1}}]',
        ),
        Case(
            "GET /vessel?select=harbour(title,id,t:title,id)&id=eq.1",
            text='[{"harbour":{"t": "Oslo", "id": 1, "title": "Oslo"}}]',
        ),
        # the alias is the key, also if PostgreSQL refuses it
        Case('GET /vessel?select="a \\"b\\"":harbour(title)&"a \\"b\\"".title=eq.Oslo&id=eq.1', json=[{'a "b"': OSLO}]),
        Case('GET /vessel?select="":harbour(title)', 400, error("42601")),
        # inner joins: of the direct parent only
        Case(
            "GET /harbour?select=id,vessel!inner(id,route(id))&vessel.route.id=eq.3&order=id",
            json=[
                {"id": 1, "vessel": [{"id": 1, "route": []}, {"id": 4, "route": []}]},
                {"id": 2, "vessel": [{"id": 2, "route": [{"id": 3}]}]},
            ],
        ),
        Case(
            "GET /harbour?select=id,vessel!inner(id,route!inner(id))&vessel.route.id=eq.3",
            json=[{"id": 2, "vessel": [{"id": 2, "route": [{"id": 3}]}]}],
        ),
        Case("GET /harbour?select=id,vessel!inner()&order=id", json=[{"id": 1}, {"id": 2}]),
        # spreads
        Case(
            "GET /harbour?select=title,...vessel(*)&vessel.order=id&id=eq.1",
            json=[
                {
                    **OSLO,
                    "id": [1, 4],
                    "label": ["Skua", "Auk"],
                    "home_id": [1, 1],
                    "owner_id": [2, 3],
                    "note": [None, "x"],
                }
            ],
        ),
        Case(
            "GET /harbour?select=...vessel(note,licence(id),route(id))&vessel.order=id&vessel.route.order=id&id=eq.1",
            json=[{"note": [None, "x"], "licence": [{"id": 1}, None], "route": [[{"id": 1}, {"id": 2}], []]}],
        ),
        Case("GET /harbour?select=...vessel(label)&vessel.order=id.desc&id=eq.1", json=[{"label": ["Auk", "Skua"]}]),
        Case("GET /harbour?select=...vessel(note)&vessel.id=eq.1&id=eq.1", json=[{"note": [None]}]),
        Case("GET /harbour?select=id,...vessel!inner(label)&order=id.desc&limit=1", json=[{"id": 2, "label": ["Tern"]}]),  # noqa: E501
        Case("GET /vessel?select=id,...harbour(id)&id=eq.1", text='[{"id":1,"id":1}]'),
        Case("GET /vessel?select=id,...harbour()&id=eq.1", text='[{"id":1}]'),
        # logic trees, orders and ranges of embeds
        Case(
            "GET /vessel?select=route(id)&route.or=(id.eq.1,to_id.eq.1)&route.order=id&id=eq.1",
            json=[{"route": [{"id": 1}, {"id": 2}]}],
        ),
        Case("GET /vessel?select=route(id)&route.not.and=(id.eq.1,to_id.eq.2)&id=eq.1", json=[{"route": [{"id": 2}]}]),
        Case(
            "GET /harbour?select=vessel(route(id))&vessel.id=eq.1&vessel.route.or=(id.eq.2)&vessel.route.limit=1&id=eq.1",  # noqa: E501
            json=[{"vessel": [{"route": [{"id": 2}]}]}],
        ),
        Case("GET /vessel?select=route(id)&route.order=id&route.offset=1&id=eq.1", json=[{"route": [{"id": 2}]}]),
        # null filters: of the whole row, in logic trees and counts
        Case("GET /vessel?select=id,licence(code)&licence=not.is.null&order=id", json=[{"id": 1, "licence": {"code": None}}, {"id": 2, "licence": {"code": "B"}}]),  # noqa: E501
        Case("GET /vessel?select=id,l:licence(code)&l=is.null&order=id", json=[{"id": 3, "l": None}, {"id": 4, "l": None}]),  # noqa: E501
        Case("GET /vessel?select=id,licence(code)&licence.code=eq.B&licence=not.is.null", json=[{"id": 2, "licence": {"code": "B"}}]),  # noqa: E501
        Case(
            "GET /vessel?select=id,route()&route=is.null",
            json=[{"id": 3}, {"id": 4}],
            headers={"prefer": "count=exact"},
            has={"content-range": "0-1/2"},
        ),
        Case("GET /vessel?select=id,home_id(title)&home_id=eq.2", json=[{"id": 2, "home_id": {"title": "Riga"}}]),
        Case("GET /vessel?select=id,home:home_id(title)&home_id=eq.2", json=[{"id": 2, "home": {"title": "Riga"}}]),
        Case("GET /vessel?select=id,route(id)&route=eq.1", 400, error("42703")),
        # related orders
        Case("GET /vessel?select=id,licence(code)&order=licence(code)&limit=1", json=[{"id": 2, "licence": {"code": "B"}}]),  # noqa: E501
        Case("GET /vessel?select=id,...harbour(title)&order=harbour(title).desc.nullslast&limit=1", json=[{"id": 2, "title": "Riga"}]),  # noqa: E501
        Case("GET /vessel?select=id,harbour(title)&order=harbour(title).nullsfirst&limit=1", json=[{"id": 3, "harbour": None}]),  # noqa: E501
        Case("GET /vessel?select=id,harbour(id)&order=harbour(title)", 400, error("42703")),
        # aggregates of embeds and spreads
        Case("GET /vessel?select=harbour(title),id.count()&id=in.(1,4)", json=[{"harbour": OSLO, "count": 2}]),
        Case(
            "GET /harbour?select=id,vessel(id.max(),home_id)&id=eq.1",
            json=[{"id": 1, "vessel": [{"max": 4, "home_id": 1}]}],
        ),
        Case("GET /harbour?select=id,vessel(id.sum())&id=eq.3", json=[{"id": 3, "vessel": [{"sum": None}]}]),
        # the target of an embed with an alias
        Case(
            "GET /vessel?select=id,port:harbour!inner(title)&harbour.title=eq.Riga",
            json=[{"id": 2, "port": {"title": "Riga"}}],
            has={
                "warning": '299 PostgRESTv16.1 "Embedded resource was referenced by relation name even though it has '
                'an alias. Use the alias in filters, orders and limits instead."'
            },
        ),
        Case("GET /vessel?select=id,port:harbour!inner(title)&port.title=eq.Riga", json=[{"id": 2, "port": {"title": "Riga"}}], has={"warning": None}),  # noqa: E501
    ],
    ids=str,
)  # fmt: skip
def test_embeds(service: Service, case: Case) -> None:
    case.check(service.client)


@pytest.mark.parametrize("preference", ["planned", "estimated"])
def test_null_filters_count_for_the_planner(service: Service, preference: str) -> None:
    response = service.get("/vessel?select=id,route()&route=is.null", headers={"prefer": f"count={preference}"})
    assert response.status_code in (200, 206)
    assert response.headers["preference-applied"] == f"count={preference}"
    assert response.headers["content-range"].partition("/")[2].isdigit()


@pytest.mark.parametrize(
    "case",
    [
        Case(
            "GET /vessel?select=id,port:harbour(title)&harbour.title=eq.Riga",
            400,
            error(
                "PGRST108",
                "'harbour' is not an embedded resource in this request",
                details="Target names are not allowed in filters if they have an alias",
                hint="Change 'harbour' to 'port' in filters, orders or limits.",
            ),
        ),
        Case(
            "GET /vessel?select=port:harbour(title),harbour(title)&harbour.title=eq.x&id=eq.1",
            json=[{"port": OSLO, "harbour": None}],
        ),
        Case("GET /vessel?select=harbour(title)&harbour.title=eq.x&id=eq.1", json=[{"harbour": None}]),
        Case(
            "GET /vessel?x.title=eq.x",
            400,
            error(
                "PGRST108",
                "'x' is not an embedded resource in this request",
                details=None,
                hint="Verify that 'x' is included in the 'select' query parameter.",
            ),
        ),
    ],
    ids=str,
)
def test_only_aliases_name_embeds_that_have_one(strict_service: Service, case: Case) -> None:
    case.check(strict_service.client)


@pytest.mark.parametrize(
    "case",
    [
        Case(
            "GET /buyer?select=id,place(place_1,buyer_1)&order=id",
            json=[{"id": 1, "place": [{"place_1": "a", "buyer_1": None}]}, {"id": 2, "place": []}],
        ),
        Case("GET /buyer?select=id,place(id)&place=is.null", json=[{"id": 2, "place": []}]),
        Case("GET /buyer?select=place_1,place()&place=not.is.null", json=[{"place_1": "x"}]),
        Case(
            "GET /buyer?select=id,first_place(place_1)&order=id",
            json=[{"id": 1, "first_place": {"place_1": "a"}}, {"id": 2, "first_place": None}],
        ),
        Case(
            "GET /place?select=place_2,buyer(place(place_1))",
            json=[{"place_2": "b", "buyer": {"place": [{"place_1": "a"}]}}],
        ),
        Case("GET /place_1?select=place(place_1,place_1(id))", json=[{"place": {"place_1": [{"id": 1}]}}]),
        Case("GET /buyer?select=place(nope)", 400, error("42703", "column place_1.nope does not exist")),
    ],
    ids=str,
)
def test_relations_and_columns_may_have_the_names_of_aliases(service: Service, case: Case) -> None:
    case.check(service.client)


@pytest.mark.parametrize(
    "case",
    [
        # of the levels: relation and depth; many-to-many ones have the name of the relation
        Case("GET /harbour?select=vessel(route(nope))", 400, error("42703", "column route_2.nope does not exist")),
        Case("GET /vessel?select=permit(id),route(nope)", 400, error("42703", "column route_1.nope does not exist")),
        Case("GET /vessel?select=tag!vessel_tag(nope)", 400, error("42703", "column tag.nope does not exist")),
        Case("GET /vessel?select=owner(nope)", 400, error("42703", "column person_1.nope does not exist")),
        Case("GET /rpc/all_vessels?select=nope", 400, error("42703", "column vessel.nope does not exist")),
        Case("GET /rpc/columns?select=nope", 400, error("42703", "column record.nope does not exist")),
        Case("GET /rpc/number?select=nope", 400, error("42703", "column number.nope does not exist")),
        # of the joins: level above, key and depth
        Case(
            "GET /vessel?select=port:harbour(id)&order=port(title)",
            400,
            error("42703", "column vessel_port_1.title does not exist"),
        ),
    ],
    ids=str,
)
def test_messages_of_the_database_name_levels_as_postgrest_does(service: Service, case: Case) -> None:
    case.check(service.client)


@pytest.mark.parametrize(
    ("request_", "code", "name"),
    [
        # paths that name no embed: filters, orders, ranges, logic trees; the last one of several
        ("vessel?select=id&a.id=eq.1&b.id=eq.1&c.order=id", "PGRST108", "b"),
        ("vessel?select=id&a.or=(id.eq.1)&b.limit=1&c.order=id&d.order=id", "PGRST108", "d"),
        ("vessel?select=id&a.or=(id.eq.1)&b.limit=1", "PGRST108", "b"),
        ("vessel?select=id&a.or=(id.eq.1)&b.or=(id.eq.1)", "PGRST108", "b"),
        # then relationships, orders by embeds, and aggregates
        ("vessel?select=nope(id)&a.id=eq.1", "PGRST108", "a"),
        ("vessel?select=nope(id)&order=a(id)", "PGRST200", "nope"),
        ("vessel?select=...route(id.sum())&order=a(id)", "PGRST108", "a"),
    ],
)
def test_of_several_errors_the_same_one_as_by_postgrest(service: Service, request_: str, code: str, name: str) -> None:
    body = service.get(f"/{request_}").json()
    assert body["code"] == code
    assert f"'{name}'" in body["message"]
