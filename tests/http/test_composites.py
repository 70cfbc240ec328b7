"""Composite values in responses: flat, nested, in arrays, in each other (rendering-9 to rendering-24)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, answer
from tests.harness.service import Service
from tests.http.conftest import Serve

TYPES = """
create type gauge as (id int, label text);
create type crate as (code text, item gauge);
create type shelf as (shelf_title text, items gauge[]);
create type hall as ("Name" text, crates crate[], main shelf);
create type flagbox as (is_on boolean);
create type moment as (at timestamp, ats timestamp[]);
create type hollow as ();
create domain small_gauge as gauge check ((value).id < 100);
create domain gauges as gauge[];
create domain price as numeric(8, 2);
create type tag as (price price, prices price[], g small_gauge, gs gauges);
create table ledger (gone int, entry_id int, also_gone text, note text);
alter table ledger drop column gone, drop column also_gone;
insert into ledger values (1, 'first'), (2, null);
create table bare ();
insert into bare default values;
do $$ begin
  execute (select 'create table wide (' || string_agg('c' || i || ' int', ', ') || ')' from generate_series(1, 300) i);
  execute (select 'insert into wide values (' || string_agg(i::text, ', ') || ')' from generate_series(1, 300) i);
end $$;

create function columns() returns table (n int, c gauge, m text) language sql stable
  as $$values (1, (7, 'x')::gauge, 'z'), (2, null, null), (3, (null, null)::gauge, '')$$;
create function column_of_one() returns table (c gauge) language sql stable
  as $$values ((1, 'a "b"')::gauge), (null), ((null, '')::gauge)$$;
create function one_out(out c gauge) language sql stable as $$select (1, 'a')::gauge$$;
create function one_null_out(out c gauge) language plpgsql stable as 'begin c := null; end';
create function two_out(out n int, out c gauge) language sql stable as $$select 1, (1, 'a')::gauge$$;
create function column_f() returns table (column_f gauge) language sql stable as $$select (1, 'own name')::gauge$$;
create function label() returns table (c gauge) language sql stable as $$select (1, 'named like a field')::gauge$$;
create function direct() returns gauge language sql stable as $$select (1, 'n')::gauge$$;
create function direct_null() returns crate language sql stable as 'select null::crate';
create function direct_crate() returns crate language sql stable as $$select ('k', (null, null)::gauge)::crate$$;
create function direct_shelf() returns shelf language sql stable
  as $$select ('top', array[(1, 'a,b')::gauge, null])::shelf$$;
create function direct_flag() returns flagbox language sql stable as 'select row(true)::flagbox';
create function direct_domain() returns small_gauge language sql stable as $$select (5, 'd')::gauge::small_gauge$$;
create function direct_hollow() returns hollow language sql stable as 'select row()::hollow';
create function set_of_crate() returns setof crate language sql stable
  as $$values ('k', (1, 'in "q"')::gauge), ('l', null)$$;
create function set_of_domain() returns setof small_gauge language sql stable
  as $$values ((5, 'd')::gauge::small_gauge)$$;
create function set_of_bare() returns setof bare language sql stable as 'select * from bare';
create function set_of_arrays() returns setof gauge[] language sql stable
  as $$values (array[(1, 'a')::gauge, null]), ('{}'), (null)$$;
create function array_of_composites() returns gauge[] language sql stable as $$select array[(1, 'a')::gauge]$$;
create function ledgers() returns setof ledger language sql stable as 'select * from ledger';
create function ledger_column() returns table (n int, l ledger) language sql stable
  as 'select 1, l from ledger l order by entry_id';
create function lone_ledger() returns table (l ledger) language sql stable
  as 'select l from ledger l order by entry_id';
create function crates() returns table (n int, c crate) language sql stable
  as $$values (1, ('k', (1, 'in "q"')::gauge)::crate), (2, ('l', null)::crate), (3, ('m', (null, '')::gauge)::crate)$$;
create function halls() returns table (n int, h hall) language sql stable as $$
  select 1, ('big', array[('k', (1, e'\\\\ "')::gauge)::crate, ('l', null)::crate, null],
             ('s', array[(2, '')::gauge, (null, null)::gauge])::shelf)::hall $$;
create function moments() returns table (n timestamp, c moment, cs moment[]) language sql stable as $$
  select t, (t, array[t])::moment, array[(t, array[t])::moment] from (values (timestamp '2024-01-15 10:30')) v(t) $$;
create function tags() returns table (n price, t tag) language sql stable as $$
  select 1.5, (2.5, array[3.5], (4, 'four')::gauge, array[(5, 'five')::gauge])::tag $$;
create function domain_column() returns table (n int, g small_gauge, gs gauges) language sql stable
  as $$select 1, (5, 'd')::gauge::small_gauge, array[(6, 'e')::gauge]::gauges$$;
create function lone_domain() returns table (g small_gauge) language sql stable
  as $$select (5, 'd')::gauge::small_gauge$$;
create function grids() returns table (n int, g gauge[]) language sql stable
  as $$select 1, array[[(1, 'a')::gauge, null], [(2, 'b c')::gauge, (3, null)::gauge]]$$;
create function shifted() returns table (n int, g gauge[]) language sql stable
  as $$select 1, '[0:1]={"(1,a)","(2,b)"}'::gauge[]$$;
create function flags() returns table (n int, f flagbox, fs flagbox[]) language sql stable
  as 'select 1, row(true)::flagbox, array[row(true)::flagbox, row(false)::flagbox, row(null)::flagbox]';
create function hollows() returns table (n int, h hollow) language sql stable as 'select 1, row()::hollow';
create function lone_hollow() returns table (h hollow) language sql stable as 'select row()::hollow';
create function same_names() returns table (id int, c gauge, d gauge) language sql stable
  as $$select 1, (2, 'x')::gauge, (3, 'y')::gauge$$;
create function anonymous() returns table (n int, r record) language sql stable as $$select 1, row(2, 'x y', null)$$;
create function wides() returns table (n int, w wide) language sql stable as 'select 0, w from wide w';
create function set_of_wide() returns setof wide language sql stable as 'select * from wide';
"""
SERVED = """
do $$ declare routine regprocedure; begin
  for routine in select oid from pg_proc where pronamespace = 'public'::regnamespace loop
    execute format('comment on routine %s is %L', routine, e'HTTP GET');
  end loop;
end $$;
"""

# function, its body flat, its body nested (None: the same)
BODIES: list[tuple[str, str, str | None]] = [
    ("columns",
     '[{"n":1,"id":7,"label":"x","m":"z"},{"n":2,"id":null,"label":null,"m":null},'
     '{"n":3,"id":null,"label":null,"m":""}]',
     '[{"n":1,"c":{"id":7,"label":"x"},"m":"z"},{"n":2,"c":null,"m":null},{"n":3,"c":null,"m":""}]'),
    ("column-of-one",
     '[{"id":1,"label":"a \\"b\\""},{"id":null,"label":null},{"id":null,"label":""}]',
     '[{"c":{"id":1,"label":"a \\"b\\""}},{"c":null},{"c":{"id":null,"label":""}}]'),
    ("one-out", '{"id":1,"label":"a"}', '{"c":{"id":1,"label":"a"}}'),
    ("one-null-out", '{"id":null,"label":null}', '{"c":null}'),
    ("two-out", '{"n":1,"id":1,"label":"a"}', '{"n":1,"c":{"id":1,"label":"a"}}'),
    ("column-f", '[{"id":1,"label":"own name"}]', '[{"columnF":{"id":1,"label":"own name"}}]'),
    ("label", '[{"id":1,"label":"named like a field"}]', '[{"c":{"id":1,"label":"named like a field"}}]'),
    ("direct", '{"id":1,"label":"n"}', None),
    ("direct-null", '{"code":null,"item":null}', None),
    ("direct-crate", '{"code":"k","item":{"id":null,"label":null}}', None),
    ("direct-shelf", '{"shelfTitle":"top","items":[{"id":1,"label":"a,b"},null]}', None),
    ("direct-flag", '{"isOn":true}', None),
    ("direct-domain", '{"id":5,"label":"d"}', None),
    ("direct-hollow", "{}", None),
    ("set-of-crate", '[{"code":"k","item":{"id":1,"label":"in \\"q\\""}},{"code":"l","item":null}]', None),
    ("set-of-domain", '[{"id":5,"label":"d"}]', None),
    ("set-of-bare", "[{}]", None),
    ("set-of-arrays", '[[{"id":1,"label":"a"},null],[],null]', None),
    ("array-of-composites", '["(1,a)"]', None),
    ("ledgers", '[{"entryId":1,"note":"first"},{"entryId":2,"note":null}]', None),
    ("ledger-column",
     '[{"n":1,"entryId":1,"note":"first"},{"n":1,"entryId":2,"note":null}]',
     '[{"n":1,"l":{"entryId":1,"note":"first"}},{"n":1,"l":{"entryId":2,"note":null}}]'),
    ("lone-ledger",
     '[{"entryId":1,"note":"first"},{"entryId":2,"note":null}]',
     '[{"l":{"entryId":1,"note":"first"}},{"l":{"entryId":2,"note":null}}]'),
    ("crates",
     '[{"n":1,"code":"k","item":{"id":1,"label":"in \\"q\\""}},{"n":2,"code":"l","item":null},'
     '{"n":3,"code":"m","item":{"id":null,"label":""}}]',
     '[{"n":1,"c":{"code":"k","item":{"id":1,"label":"in \\"q\\""}}},{"n":2,"c":{"code":"l","item":null}},'
     '{"n":3,"c":{"code":"m","item":{"id":null,"label":""}}}]'),
    ("halls",
     '[{"n":1,"Name":"big","crates":[{"code":"k","item":{"id":1,"label":"\\\\ \\""}},{"code":"l","item":null},null],'
     '"main":{"shelfTitle":"s","items":[{"id":2,"label":""},{"id":null,"label":null}]}}]',
     '[{"n":1,"h":{"name":"big","crates":[{"code":"k","item":{"id":1,"label":"\\\\ \\""}},{"code":"l","item":null},'
     'null],"main":{"shelfTitle":"s","items":[{"id":2,"label":""},{"id":null,"label":null}]}}}]'),
    ("moments",
     '[{"n":"2024-01-15T10:30:00","at":"2024-01-15T10:30:00","ats":["2024-01-15T10:30:00"],'
     '"cs":[{"at":"2024-01-15T10:30:00","ats":["2024-01-15T10:30:00"]}]}]',
     '[{"n":"2024-01-15T10:30:00","c":{"at":"2024-01-15T10:30:00","ats":["2024-01-15T10:30:00"]},'
     '"cs":[{"at":"2024-01-15T10:30:00","ats":["2024-01-15T10:30:00"]}]}]'),
    ("tags",
     '[{"n":1.50,"price":2.50,"prices":["3.50"],"g":{"id":4,"label":"four"},"gs":[{"id":5,"label":"five"}]}]',
     '[{"n":1.50,"t":{"price":2.50,"prices":["3.50"],"g":{"id":4,"label":"four"},"gs":[{"id":5,"label":"five"}]}}]'),
    ("domain-column",
     '[{"n":1,"id":5,"label":"d","gs":[{"id":6,"label":"e"}]}]',
     '[{"n":1,"g":{"id":5,"label":"d"},"gs":[{"id":6,"label":"e"}]}]'),
    ("lone-domain", '[{"id":5,"label":"d"}]', '[{"g":{"id":5,"label":"d"}}]'),
    ("grids", '[{"n":1,"g":[["(1,a)",null],["(2,\\"b c\\")","(3,)"]]}]', None),
    ("shifted", '[{"n":1,"g":[{"id":1,"label":"a"},{"id":2,"label":"b"}]}]', None),
    ("flags",
     '[{"n":1,"isOn":true,"fs":[{"isOn":true},{"isOn":false},{"isOn":null}]}]',
     '[{"n":1,"f":{"isOn":true},"fs":[{"isOn":true},{"isOn":false},{"isOn":null}]}]'),
    ("hollows", '[{"n":1,"h":{}}]', None),
    ("lone-hollow", "[{}]", '[{"h":{}}]'),
    ("same-names",
     '[{"id":1,"id":2,"label":"x","id":3,"label":"y"}]',
     '[{"id":1,"c":{"id":2,"label":"x"},"d":{"id":3,"label":"y"}}]'),
    ("anonymous", '[{"n":1,"r":["2","x y",null]}]', None),
    ("wides",
     "[{" + ",".join(['"n":0', *(f'"c{i}":{i}' for i in range(1, 301))]) + "}]",
     '[{"n":0,"w":{' + ",".join(f'"c{i}":{i}' for i in range(1, 301)) + "}}]"),
    ("set-of-wide", "[{" + ",".join(f'"c{i}":{i}' for i in range(1, 301)) + "}]", None),
]  # fmt: skip
NAMES = [name for name, _, _ in BODIES]


@pytest.fixture(scope="module")
def flat(every_database: Database, serve: Serve) -> Service:
    return serve(every_database, TYPES + SERVED)


@pytest.fixture(scope="module")
def nested(flat: Service, every_database: Database, serve: Serve) -> Service:
    return serve(every_database, "", {"Service:RoutineOptions:NestedJsonForCompositeTypes": "true"})


DESCRIBED = {"Service:OpenApiOptions:Enabled": "true", "Service:OpenApiOptions:FileName": ""}


@pytest.fixture(scope="module")
def unresolved(flat: Service, every_database: Database, serve: Serve) -> Service:
    return serve(every_database, "", {"Service:RoutineOptions:ResolveNestedCompositeTypes": "false", **DESCRIBED})


@pytest.fixture(scope="module")
def nested_unresolved(flat: Service, every_database: Database, serve: Serve) -> Service:
    options = "Service:RoutineOptions:"
    settings = {options + "NestedJsonForCompositeTypes": "true", options + "ResolveNestedCompositeTypes": "false"}
    return serve(every_database, "", {**settings, **DESCRIBED})


@pytest.mark.parametrize(("name", "body"), [(name, body) for name, body, _ in BODIES], ids=NAMES)
def test_composite_columns_are_expanded_in_place(flat: Service, name: str, body: str) -> None:
    assert answer(flat.get(f"/api/{name}")) == (200, JSON, body)


@pytest.mark.parametrize(("name", "body"), [(name, body or flat) for name, flat, body in BODIES], ids=NAMES)
def test_nested_composite_columns_are_objects(nested: Service, name: str, body: str) -> None:
    assert answer(nested.get(f"/api/{name}")) == (200, JSON, body)


# Nothing inside a composite is resolved: composites and arrays of them are PostgreSQL's text.
ONE_LEVEL = [
    ("columns", '[{"n":1,"id":7,"label":"x","m":"z"},{"n":2,"id":null,"label":null,"m":null},'
                '{"n":3,"id":null,"label":null,"m":""}]'),
    ("crates", '[{"n":1,"code":"k","item":"(1,\\"in \\"\\"q\\"\\"\\")"},{"n":2,"code":"l","item":null},'
               '{"n":3,"code":"m","item":"(,\\"\\")"}]'),
    ("set-of-crate", '[{"code":"k","item":"(1,\\"in \\"\\"q\\"\\"\\")"},{"code":"l","item":null}]'),
    ("direct-shelf", '{"shelfTitle":"top","items":["(1,\\"a,b\\")",null]}'),
    ("set-of-arrays", '[[{"id":1,"label":"a"},null],[],null]'),
    ("domain-column", '[{"n":1,"id":5,"label":"d","gs":[{"id":6,"label":"e"}]}]'),
    ("tags", '[{"n":1.50,"price":2.50,"prices":["3.50"],"g":"(4,four)","gs":["(5,five)"]}]'),
]  # fmt: skip
ONE_LEVEL_NESTED = [
    ("columns", '[{"n":1,"c":{"id":7,"label":"x"},"m":"z"},{"n":2,"c":null,"m":null},{"n":3,"c":null,"m":""}]'),
    ("crates", '[{"n":1,"c":{"code":"k","item":"(1,\\"in \\"\\"q\\"\\"\\")"}},{"n":2,"c":{"code":"l","item":null}},'
               '{"n":3,"c":{"code":"m","item":"(,\\"\\")"}}]'),
    ("tags", '[{"n":1.50,"t":{"price":2.50,"prices":["3.50"],"g":"(4,four)","gs":["(5,five)"]}}]'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body"), ONE_LEVEL, ids=[name for name, _ in ONE_LEVEL])
def test_without_resolving_inner_composites_are_text(unresolved: Service, name: str, body: str) -> None:
    assert answer(unresolved.get(f"/api/{name}")) == (200, JSON, body)


@pytest.mark.parametrize(("name", "body"), ONE_LEVEL_NESTED, ids=[name for name, _ in ONE_LEVEL_NESTED])
def test_without_resolving_one_level_is_nested(nested_unresolved: Service, name: str, body: str) -> None:
    assert answer(nested_unresolved.get(f"/api/{name}")) == (200, JSON, body)


def test_unresolved_composites_are_described_as_text(unresolved: Service, nested_unresolved: Service) -> None:
    """As in generated clients, which have the same types."""

    def members(service: Service, name: str) -> dict[str, Any]:
        operation = service.get("/openapi.json").json()["paths"][f"/api/{name}"]["get"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        result: dict[str, Any] = schema["items"]["properties"]
        return result

    text = {"type": "string", "nullable": True}
    texts = {"type": "array", "items": text, "nullable": True}
    assert members(unresolved, "crates")["item"] == text
    assert members(nested_unresolved, "crates")["c"]["properties"] == {"code": text, "item": text}
    for tags in (members(unresolved, "tags"), members(nested_unresolved, "tags")["t"]["properties"]):
        assert (tags["g"], tags["gs"], tags["prices"]) == (text, texts, texts)


@pytest.mark.parametrize("annotation", ["nested", "nested_json", "nested_composite"])
def test_annotation_nests_one_endpoint(own_database: Database, serve_once: Serve, annotation: str) -> None:
    service = serve_once(
        own_database,
        f"""
        create type gauge as (id int, label text);
        create function whole() returns table (n int, c gauge) language sql stable as $$select 1, (2, 'x')::gauge$$;
        create function apart() returns table (n int, c gauge) language sql stable as 'select * from whole()';
        comment on function whole() is 'HTTP\n{annotation}';
        comment on function apart() is 'HTTP';
        """,
    )
    assert service.get("/api/whole").text == '[{"n":1,"c":{"id":2,"label":"x"}}]'
    assert service.get("/api/apart").text == '[{"n":1,"id":2,"label":"x"}]'


def test_field_names_are_unchanged_without_camel_case(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(
        own_database,
        """
        create type carton as ("Net_Weight" int, unit_code text);
        create function boxes() returns table (the_box carton, n int) language sql stable
          as $$select (1, 'kg')::carton, 2$$;
        comment on function boxes() is 'HTTP\nnested';
        """,
        {"Service:CamelCaseNames": "false"},
    )
    assert service.get("/api/boxes").text == '[{"the_box":{"Net_Weight":1,"unit_code":"kg"},"n":2}]'


def test_attributes_of_inaccessible_types_stay_text(own_database: Database, serve_once: Serve) -> None:
    role = f"{own_database.name}_guest"
    own_database.execute(f"""
        create role {role} login;
        create schema vault;
        create type vault.secret as (id int, label text);
        create type around as (n int, s vault.secret);
        create function around_one() returns table (n int, a around) language sql stable security definer
          as $$select 1, (4, (5, 'x y'))::around$$;
        comment on function around_one() is 'HTTP\nnested';
        create function secrets() returns table (n int, s vault.secret[]) language sql stable security definer
          as $$select 1, array[(2, 'x y')::vault.secret]$$;
        comment on function secrets() is 'HTTP\nnested';
    """)
    service = serve_once(own_database, "", {"ConnectionStrings:Default": own_database.conninfo_as(role)})
    body = '[{"n":1,"a":{"n":4,"s":"(5,\\"x y\\")"}}]'
    assert answer(service.get("/api/around-one")) == (200, JSON, body)
    assert service.get("/api/secrets").status_code == 404


def test_altered_types_are_picked_up_by_a_reload(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(
        own_database,
        """
        create type gauge as (id int, label text);
        create function one() returns table (n int, c gauge, cs gauge[]) language plpgsql stable
          as $$begin return query execute 'select 1, row(2, null)::gauge, array[row(3, null)::gauge]'; end$$;
        create function two() returns table (n int, c gauge) language plpgsql stable
          as $$begin return query execute 'select 1, row(2, null)::gauge'; end$$;
        comment on function one() is 'HTTP\nnested';
        comment on function two() is 'HTTP';
        """,
    )
    before = '[{"n":1,"c":{"id":2,"label":null},"cs":[{"id":3,"label":null}]}]'
    assert service.get("/api/one").text == before
    own_database.execute('alter type gauge drop attribute label; alter type gauge add attribute "unit_of" text')
    own_database.execute("notify rowcall, 'reload'")
    service.wait_for_log("schema snapshot 2 is served")
    assert service.get("/api/one").text == before.replace("label", "unitOf")
    assert service.get("/api/two").text == '[{"n":1,"id":2,"unitOf":null}]'
