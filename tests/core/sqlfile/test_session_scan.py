"""Session effects that the words of a source reveal: in case of doubt, a source has effects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.catalogue.session_effects import (
    Dependencies,
    SessionEffect,
    dependencies_unchanged,
    guard,
    guard_failed,
)
from rowcall.core.sqlfile.session_effect_scan import scan
from rowcall.core.sqlfile.session_effects import CatalogueObject, DependencyGraph

NOTHING = [
    "select 1",
    "select 'set role x; listen y' as \"a b\" -- execute",
    "select $$ execute 'x' $$",
    "/* a /* nested prepare */ hold */ select 1",
    "begin perform set_config('a.b', $1, true); return 1; end",
    "select set_config('a.b', (select max(x), f(1, 2) from t), is_local => true)",
    "select pg_catalog.set_config('a', 'b', 't')",
    "begin set local work_mem = '1MB'; set transaction read only; set constraints all immediate; end",
    "update t set a = 1, set_at = now()",
    "insert into t values (1) on conflict (a) do update set b = 2",
    "insert into t (comment, start) values (1, 2)",
    "declare comment text; begin comment := 'x'; end",
    "select pg_advisory_xact_lock(1), pg_try_advisory_xact_lock_shared(2), nextval('s'), pg_notify('a', 'b')",
    "do nothing",
    "begin open c for select 1; fetch c into x; close c; lock table t; truncate t; notify c; savepoint s; end",
    "select a[1:n] from t",
]
LEAVING = {
    SessionEffect.SETTINGS: [
        "begin set work_mem = '1MB'; end",
        "begin if x then set role y; end if; end",
        "begin case when a then null; else reset all; end case; end",
        "<<outer>> set x = 1",
        "set session characteristics as transaction read only",
        "select set_config('a', 'b', false)",
        "select set_config('a', 'b', $1)",
        "select set_config('a', 'b', true and false)",
        "select SET_CONFIG ('a', 'b', not true)",
        'select "set_config"(a, b, c)',
        "select set_config",
        "update pg_settings set setting = 'x' where name = 'work_mem'",
        "loop set search_path to a; end loop",
        "select 1; set x to 2",
        "set local .x = 1",
    ],
    SessionEffect.LOCKS: ["select pg_advisory_lock(1)", "perform pg_catalog.pg_try_advisory_lock_shared(1)"],
    SessionEffect.TEMPORARY: [
        "create temp table t (n int)",
        "create local temporary view v as select 1",
        "select 1 into temporary t",
        "drop table pg_temp.x",
        "create table pg_temp_3.t ()",
    ],
    SessionEffect.CHANNELS: ["listen a"],
    SessionEffect.CURSORS: ["declare c cursor with hold for select 1"],
    SessionEffect.STATEMENTS: ["prepare x as select 1", "deallocate all"],
    SessionEffect.SEED: ["select setseed(0.5)"],
    SessionEffect.ANYTHING: [
        "begin execute 'x'; end",
        "for r in execute q loop end loop",
        "begin create table t (); end",
        "alter table t add x int",
        "do $$ begin end $$",
        "do language plpgsql $$ begin end $$",
        "discard all",
        "load 'x'",
        "select query_to_xml('x', true, true, '')",
        "select pg_replication_origin_session_setup('x')",
        'select u&"d\\0061ta"',
        "select 1 /* never closed",
    ],
}


@pytest.mark.parametrize("text", NOTHING)
def test_sources_without_session_effects(text: str) -> None:
    assert scan(text).traces == frozenset()


@pytest.mark.parametrize(("trace", "text"), [(trace, text) for trace, texts in LEAVING.items() for text in texts])
def test_sources_with_session_effects(trace: SessionEffect, text: str) -> None:
    assert trace in scan(text).traces


@given(st.sampled_from([text for texts in LEAVING.values() for text in texts]), st.sampled_from(NOTHING))
def test_preceding_text_hides_no_session_effects(text: str, before: str) -> None:
    assert scan(text).traces <= scan(f"{before}\n; {text}").traces


def test_statements_that_read_sequences_are_reported() -> None:
    assert scan("select lastval()").reads_sequences
    assert scan("begin execute x; end").reads_sequences
    assert not scan("select nextval('s')").reads_sequences


def thing(oid: int, name: str, *texts: str, **options: object) -> CatalogueObject:
    return CatalogueObject(oid, (name,), name, texts, f"mark {oid}", f"select {name}()", **options)  # type: ignore[arg-type]


def test_the_analysis_follows_references_through_any_number_of_steps() -> None:
    functions = [
        thing(1, "root", "delete from seen where mid = 2"),
        thing(2, "fired", "begin perform helper(); end"),
        thing(3, "helper", "begin listen x; end"),
        thing(4, "alone", "select 1"),
        thing(5, "native", readable=False, why="its language is c"),
        thing(6, "over", "select native()"),
    ]
    relations = [
        thing(10, "seen", "select a from base"),
        thing(11, "base", relations=(12,)),
        thing(12, "child", triggers=(2,)),
    ]
    dependency_graph = DependencyGraph(functions, relations)
    assert dependency_graph.of_functions([1]).traces == {SessionEffect.CHANNELS}
    assert dependency_graph.of_functions([1]).reason == "helper: channels listened to"
    assert dependency_graph.of_relations([10]).traces == {SessionEffect.CHANNELS}
    assert dependency_graph.of_functions([4]).traces == frozenset()
    assert dependency_graph.of_functions([6]).traces == {SessionEffect.ANYTHING}
    assert dependency_graph.of_functions([6]).reason == "native: its language is c"
    assert dependency_graph.of_relations([10], writes=False).traces == frozenset()
    assert dependency_graph.of_texts(["insert into base values (1)"]).traces == {SessionEffect.CHANNELS}
    assert dependency_graph.of_texts(["select * from base"]).traces == frozenset()
    assert dependency_graph.of_functions([99]).traces == {SessionEffect.ANYTHING}


def test_functions_in_the_search_path_of_all_calls_count_for_every_function() -> None:
    functions = [thing(1, "root", "select 1"), thing(2, "to_int", "begin set x = 1; end")]
    assert DependencyGraph(functions, everywhere=(2,)).of_functions([1]).traces == {SessionEffect.SETTINGS}
    assert DependencyGraph(functions[:1], texts=["check (lastval() > 1)"]).of_functions([1]).reads_sequences


def test_a_function_has_the_same_effects_alone_and_among_others() -> None:
    texts = [*NOTHING, *(text for some in LEAVING.values() for text in some), "select lastval()", "select helper()"]
    functions = [thing(oid, f"f{oid}", text) for oid, text in enumerate(texts, 20_000)]
    harmless, harmful = thing(1, "helper", "select 1"), thing(1, "helper", "set x = 1")
    dependency_graph = DependencyGraph(functions, mark="m")
    for now in (
        dependency_graph,
        dependency_graph.with_functions({1: harmful}, ()).dependency_graph,
        dependency_graph.with_functions({1: harmless}, ())
        .dependency_graph.with_functions({1: harmful}, ())
        .dependency_graph,
        DependencyGraph(functions, everywhere=(functions[-1].oid,)),
        DependencyGraph(functions, texts=["check (lastval() > 1)"]),
    ):
        for item in functions:
            assert now.of_functions([item.oid]) == now.of_functions([item.oid, item.oid]), item.texts
    assert dependency_graph.of_functions([functions[-1].oid]).traces == set()
    assert dependency_graph.with_functions({1: harmful}, ()).dependency_graph.of_functions(
        [functions[-1].oid]
    ).traces == {SessionEffect.SETTINGS}


def test_changed_definitions_invalidate_the_dependencies() -> None:
    root, helper = thing(1, "root", "select helper()"), thing(2, "helper", "select 1")
    dependencies = DependencyGraph([root, helper], mark="m").of_functions([1]).dependencies
    assert (dependencies.functions, dependencies.relations) == ((1, 2), ())
    assert dependencies_unchanged("everywhere m,f1 mark 1,f2 mark 2", dependencies)
    for changed in (
        "everywhere n,f1 mark 1,f2 mark 2",
        "everywhere m,f1 mark 1,f2 mark 3",
        "everywhere m,f1 mark 1",
        "",
        "f1",
    ):
        assert not dependencies_unchanged(changed, dependencies)


@pytest.mark.parametrize(
    "text",
    ["select 1", "-- a line\n/* b */ SELECT 1", "insert into t values (1)", "with a as (select 1) select * from a"],
)
def test_a_guard_precedes_the_statement(text: str) -> None:
    wired = guard(text, Dependencies(mentions=("select f()", "select from t")), usual_day_first=False)
    assert wired is not None
    assert wired.startswith("with  rowcall_guard as (" if text.startswith("with") else "with rowcall_guard as (")
    assert "exists (select f()) or exists (select from t)" in wired
    assert wired.endswith(text.removeprefix("with "))


@pytest.mark.parametrize("text", ["call p()", "(select 1)", "begin", "table t"])
def test_a_statement_that_cannot_be_guarded_has_no_guard(text: str) -> None:
    assert guard(text, Dependencies(), usual_day_first=False) is None


def test_errors_of_the_guard_are_distinguished_from_those_of_the_statement() -> None:
    wired = guard("select '31/12/2007'::date", Dependencies(), usual_day_first=False) or ""
    place = str(wired.index("'31/12") + 1)
    assert guard_failed("22008", place, None)
    assert not guard_failed("22008", str(wired.rindex("'31/12") + 1), None)
    assert not guard_failed("22008", place, "SQL function f")
    assert not guard_failed("22008", None, None)
    assert not guard_failed("22007", place, None)
