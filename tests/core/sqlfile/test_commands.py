"""The automatic method, and which statements share a segment (sql-files-6 to sql-files-28)."""

from __future__ import annotations

import pytest

from rowcall.core.sqlfile.commands import Effect, Suspects, automatic_method, effect, execution_plans, is_hidden
from rowcall.core.sqlfile.splitting import split

SUSPECTS = Suspects(frozenset({"set_config", "place_order"}), frozenset({"busy_view"}), frozenset({"plain"}))


@pytest.mark.parametrize(
    ("sql", "method"),
    [
        ("select 1", "GET"),
        ("insert into t values (1)", "PUT"),
        ("update t set a = 1", "POST"),
        ("delete from t", "DELETE"),
        ("select * from t for update", "POST"),
        ("insert into t values (1) on conflict (a) do update set a = 2", "POST"),
        ("with x as (delete from t returning *) select * from x", "DELETE"),
        ("insert into t values (1); delete from t", "DELETE"),
        ('select 1 as "update"', "POST"),
        ("do $$ begin delete from t; end $$", "POST"),
        ("do $x$ begin end $x$; delete from t", "POST"),
        ("do language plpgsql $$ begin end $$", "GET"),
        ("do 'begin end'", "GET"),
        ("select 'delete', $$ insert $$ -- update\n", "GET"),
        ("select updated, insert_at from deleted", "GET"),
        ("call p(); truncate t; merge into t using s on true when matched then do nothing", "GET"),
    ],
)
def test_the_statement_with_the_strongest_effect_selects_the_method(sql: str, method: str) -> None:
    assert automatic_method(split(sql).statements) == method


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select * from t", Effect.READ),
        ("(select 1) union (select 2)", Effect.READ),
        ("with x as (select 1) table x", Effect.READ),
        ("values (1)", Effect.READ),
        ("show work_mem", Effect.READ),
        ("explain select 1", Effect.READ),
        ("explain analyze delete from t", Effect.WRITE),
        ("with x as (insert into t values (1) returning *) select * from x", Effect.WRITE),
        ("select * into t2 from t", Effect.WRITE),
        ("select * from t for update", Effect.WRITE),
        ("select * from t for share", Effect.WRITE),
        ("select place_order(1)", Effect.WRITE),
        ('select shop."place_order" (1)', Effect.WRITE),
        ("select place_order from t", Effect.READ),
        ("select * from busy_view", Effect.WRITE),
        ('select * from "busy_view"', Effect.WRITE),
        ("update t set a = 1", Effect.WRITE),
        ("set work_mem = '1MB'", Effect.WRITE),
        ("begin", Effect.BEGIN),
        ("start transaction read only", Effect.BEGIN),
        ("commit", Effect.END),
        ("rollback", Effect.END),
        ("rollback to savepoint a", Effect.WRITE),
        ("commit and chain", Effect.CHAIN),
        ("commit and no chain", Effect.END),
        ("commit prepared 'x'", Effect.ALONE),
        ("call p()", Effect.ALONE),
        ("vacuum t", Effect.ALONE),
        ('call shop."Plain" (p())', Effect.WRITE),
        ("call p(plain())", Effect.ALONE),
        ("reindex table t", Effect.ALONE),
        ("create database d", Effect.ALONE),
        ("create unique index concurrently i on t (a)", Effect.ALONE),
        ("alter system set work_mem = '1MB'", Effect.ALONE),
        ("discard all", Effect.ALONE),
        ("do $$ begin insert into t values (1); COMMIT; end $$", Effect.ALONE),
        ("do 'begin call p(); end'", Effect.ALONE),
        ("do $$ spi_commit(); $$ language plperl", Effect.ALONE),
        ("do $$ begin insert into t values (1); end $$", Effect.WRITE),
        ("discard plans", Effect.WRITE),
        ("create table t (a int)", Effect.WRITE),
        ("drop table t", Effect.WRITE),
        ("truncate t", Effect.WRITE),
        ("refresh materialized view concurrently v", Effect.WRITE),
        ("grant select on t to r", Effect.WRITE),
    ],
)
def test_the_effect_of_a_statement_is_reported_by_its_words(sql: str, expected: Effect) -> None:
    (statement,) = split(sql).statements
    assert effect(statement, SUSPECTS) is expected


def way(sql: str) -> str:
    """Return one letter for each statement; `|` ends a segment, `!` precedes statements that need the session settings
    of a request."""
    statements = split(sql).statements
    ways = execution_plans(statements, [effect(statement, SUSPECTS) for statement in statements])
    shown = zip(statements, ways, strict=True)
    return "".join(f"{'!' if item.fresh else ''}{text.words[0][0]}{'|' if item.last else ''}" for text, item in shown)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", "!s|"),
        ("select 1; select 2; select 3", "!sss|"),
        ("select 1; update t set a=1; select 2", "!su|!s|"),
        ("update t set a=1; update t set a=2", "!u|!u|"),
        ("begin; update t set a=1; update t set a=2; commit; select 1", "b!uuc!s|"),
        ("select 1; begin; update t set a=1; commit", "!s|b!uc|"),
        ("begin; update t set a=1; commit; begin; update t set a=1; commit", "b!ucb!uc|"),
        ("begin; set transaction isolation level serializable; select 1; commit", "bs!sc|"),
        ("select 1; vacuum; select 2", "!s|v|!s|"),
        ("begin; create table t (a int); commit", "b!cc|"),
        ("begin; call p(); commit", "b!cc|"),
        ("do $$ begin end $$; truncate t; select 1", "!d|!t|!s|"),
        ("select 1; call p(); call q(); select 1", "!s|c|c|!s|"),
        ("begin; update t set a=1", "b!u|"),
        ("commit; update t set a=1; select 1", "c!u|!s|"),
        ("begin; commit; update t set a=1; rollback; select 1", "bc!u|r!s|"),
        ("begin; update t set a=1; commit and chain; update t set a=2; commit; select 1", "b!uc!uc!s|"),
    ],
)
def test_statements_are_sent_together_if_the_result_is_the_same(sql: str, expected: str) -> None:
    assert way(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("begin; update t set a=1; commit; select 1", "...s"),
        ("begin; create table t (a int); commit; insert into t values (1)", "...i"),
        ("begin; update t set a=1; commit and chain; select 1; commit", "...sc"),
        ("begin; savepoint a; rollback to a; select 1; rollback", "....."),
        ("select 1; select 2", ".."),
    ],
)
def test_statements_after_the_end_of_a_transaction_are_detected(sql: str, expected: str) -> None:
    statements = split(sql).statements
    ways = execution_plans(statements, [effect(statement, SUSPECTS) for statement in statements])
    shown = zip(statements, ways, strict=True)
    assert "".join(text.words[0][0] if item.behind_commit else "." for text, item in shown) == expected


@pytest.mark.parametrize("word", ["begin", "COMMIT", "end", "rollback", "set a = 1", "do $$ $$", "lock t", "notify x"])
def test_commands_without_a_result_are_hidden(word: str) -> None:
    (statement,) = split(word).statements
    assert is_hidden(statement)


@pytest.mark.parametrize(
    "word", ["start transaction", "abort", "unlisten x", "create table t()", "prepare a as select 1"]
)
def test_other_commands_are_not_hidden(word: str) -> None:
    (statement,) = split(word).statements
    assert not is_hidden(statement)
