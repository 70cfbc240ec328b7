"""Reading what has changed gives exactly what reading everything gives, whatever has been done to the database."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.command.serve import connections
from rowcall.service.options.from_settings import worker_options
from rowcall.service.snapshot.exposure import exposure
from rowcall.service.snapshot.schema_snapshot import Difference, SchemaSnapshot, SnapshotChange
from rowcall.service.snapshot.snapshot_reader import SnapshotReader
from rowcall.service.snapshot.snapshot_transfer import ENDPOINTS, SnapshotParts, parts_of
from rowcall.service.supervisor.channel import PrepareSnapshotChange
from tests.harness.database import Database
from tests.harness.snapshots import read_snapshot, settings_of

STEPS = 15
ROLE, OTHER, GROUP = "changes_service", "changes_other", "changes_group"
ROLES = "\n".join(
    f"do $$begin if not exists (select from pg_roles where rolname = '{role}') then create role {role}; end if; end$$;"
    for role in (ROLE, OTHER, GROUP)
)
START = """
create schema a; create schema b;
create type a.pair as (x int, y text);
create domain a.small as int;
create table a.shelf (id int primary key, label text);
create view a.seen as select 1 as id;
comment on table a.shelf is 'HTTP'; comment on view a.seen is 'HTTP';
grant usage on schema a, b to public; grant select on all tables in schema a to public;
grant create on schema a, b to public;
""" + "\n".join(
    f"create function {schema}.f{number}(_id int) returns int language sql as 'select _id';"
    f"comment on function {schema}.f{number}(int) is 'HTTP GET';"
    for schema in "ab"
    for number in range(4)
)
BODIES = (
    "language sql as 'select _id'",
    "language sql stable as 'select {other}(_id)'",
    "language sql as $$select set_config('a.b', 'c', false)::int$$",
    "language plpgsql as $$begin perform {other}(1); return _id; end$$",
    "language plpgsql as $$begin execute 'set a.b = 1'; return 1; end$$",
    "language sql as $$select lastval()::int$$",
    "language sql as $$insert into a.shelf select _id, 'x' returning id$$",
    "language sql as $$select id from a.seen$$",
    "language sql stable as $$select set_config('response.status', '201', true)::int$$",
    "language sql begin atomic select {other}(_id); end",
)
COMMENTS = (
    "HTTP GET /{word}", "HTTP POST\ncached", "HTTP\ninternal", "HTTP GET /same", "HTTP GET /{{_id}}/{word}",
    "HTTP\ndisabled", "HTTP\ntimeout never", "nothing", "HTTP GET /{{_id}}/x\nauthorize {word}",
)  # fmt: skip


class Changes:
    """Statements, each with what it needs; many of them fail, as what they are about is not there."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.kinds: tuple[Callable[[], str], ...] = (
            *(3 * (self.function, self.comment, self.drop, self.call_changes)),
            self.rename, self.overload, self.rights, self.owner, self.settings, self.types, self.tables, self.views,
            self.triggers, self.schemas, self.everywhere, self.members, self.procedures, self.returns,
        )  # fmt: skip

    def some(self, *texts: str) -> str:
        return self._chance.choice(texts)

    @property
    def name(self) -> str:
        return f"{self.some('a', 'b')}.f{self._chance.randrange(4)}"

    def function(self) -> str:
        body = self.some(*BODIES).format(other=self.name)
        return f"create or replace function {self.name}(_id int) returns int {body}"

    def call_changes(self) -> str:
        """What others may call."""
        body = self.some(*BODIES[:3]).format(other=self.name)
        return f"create or replace function a.f1(_id int) returns int {body}"

    def comment(self) -> str:
        text = self.some(*COMMENTS).format(word=self.some("one", "two", "three"))
        return f"comment on function {self.name}(int) is {self.some(f'$c${text}$c$', 'null')}"

    def drop(self) -> str:
        return f"drop function {self.name}(int) {self.some('', 'cascade')}"

    def rename(self) -> str:
        to = self.some("rename to f1", "rename to f2", "set schema a", "set schema b")
        return f"alter function {self.name}(int) {to}"

    def overload(self) -> str:
        name, type_ = self.name, self.some("text", "a.pair", "a.small", "a.pair[]", "numeric")
        return f"create function {name}(_id {type_}) returns int language sql as 'select 1'; " + (
            f"comment on function {name}({type_}) is 'HTTP GET'"
        )

    def rights(self) -> str:
        what = self.some(f"function {self.name}(int)", "schema a", "schema b", "table a.shelf")
        word = "execute" if what.startswith("function") else "usage" if what.startswith("schema") else "select"
        role = self.some("public", ROLE, GROUP)
        return self.some(f"grant {word} on {what} to {role}", f"revoke {word} on {what} from {role}")

    def owner(self) -> str:
        return f"alter function {self.name}(int) owner to {self.some(ROLE, OTHER, GROUP)}"

    def settings(self) -> str:
        return (
            f"alter function {self.name}(int) {self.some('stable', 'strict', 'set a.b to 1', 'reset all', 'volatile')}"
        )

    def types(self) -> str:
        return self.some(
            "alter type a.pair add attribute z int cascade",
            "alter type a.pair drop attribute z",
            "alter type a.pair rename to couple",
            "alter type a.couple rename to pair",
            f"comment on type a.pair is {self.some('null', repr('a pair'))}",
            "drop type a.pair cascade",
            "create type a.pair as (x int, y text)",
        )

    def returns(self) -> str:
        name, type_ = self.name, self.some("a.pair", "setof a.shelf", "table (a int, b a.small)", "void", "a.seen[]")
        return (
            f"drop function if exists {name}(int); "
            f"create function {name}(_id int) returns {type_} language plpgsql as 'begin return; end'; "
            f"comment on function {name}(int) is 'HTTP GET'"
        )

    def tables(self) -> str:
        return self.some(
            "alter table a.shelf add column width numeric",
            "alter table a.shelf drop column width",
            "create index on a.shelf (label)",
            f"create index on a.shelf ({self.name}(id))",
            f"alter table a.shelf alter label set default {self.name}(1)",
            "alter table a.shelf alter label drop default",
            "alter table a.shelf enable row level security",
            "comment on table a.shelf is 'HTTP GET'",
        )

    def views(self) -> str:
        return f"create or replace view a.seen as select {self.some('1', '2', f'{self.name}(1)')} as id"

    def triggers(self) -> str:
        return self.some(
            "create or replace function a.fire() returns trigger language plpgsql as "
            f"$$begin perform {self.name}(1); return new; end$$",
            "create trigger fires before insert on a.shelf for each row execute function a.fire()",
            "drop trigger fires on a.shelf",
            "comment on function a.fire() is 'HTTP'",
        )

    def schemas(self) -> str:
        return self.some(
            "drop schema b cascade",
            "create schema if not exists b; grant usage, create on schema b to public",
            "alter schema b rename to c",
            "alter schema c rename to b",
        )

    def everywhere(self) -> str:
        return self.some(
            f"alter domain a.small add constraint c{self._chance.randrange(9)} check ({self.name}(value) > 0)",
            f"create operator a.## (leftarg = int, function = {self.name})",
            f"create operator a.## (rightarg = int, function = {self.name})",
            "drop operator a.## (none, int)",
        )

    def members(self) -> str:
        return self.some(f"grant {GROUP} to {ROLE}", f"revoke {GROUP} from {ROLE}")

    def procedures(self) -> str:
        name = f"{self.some('a', 'b')}.p"
        body = f"$$begin {self.some('commit', 'null')}; end$$"
        return (
            f"create or replace procedure {name}(_id int) language plpgsql as {body}; "
            f"comment on procedure {name}(int) is 'HTTP'"
        )


@pytest.fixture
def shelves(own_database: Database) -> Iterator[Database]:
    own_database.execute(ROLES)
    own_database.execute(START)
    yield own_database
    own_database.execute(f"drop owned by {ROLE}, {OTHER}, {GROUP}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_only_changed_objects_are_read_again(shelves: Database, seed: int) -> None:
    changes = Changes(random.Random(seed))
    settings = settings_of(
        shelves,
        {
            "ConnectionStrings:Default": make_conninfo(shelves.conninfo, options=f"-c role={ROLE}"),
            "Service:TrustedOwners:0": OTHER,
            "Service:CrudSource:Enabled": "true",
            "Service:HttpClientOptions:Enabled": "true",
        },
    )

    async def work() -> None:
        again = reader()
        former = await again.first()
        statements: list[str] = []
        for number in range(2, 2 + STEPS):
            for _ in range(changes._chance.randrange(1, 4)):
                with contextlib.suppress(psycopg.Error):
                    sql = changes._chance.choice(changes.kinds)()
                    await asyncio.to_thread(shelves.execute, sql)
                    statements.append(sql)
            found, anew = await again.read(number), await reader().read(number)
            assert_same(found, anew, statements)
            sent = PrepareSnapshotChange.of(SnapshotChange.from_snapshots(former, found)).snapshot(former)
            assert_same(sent, anew, statements)
            assert Difference.from_snapshots(former, found) == Difference.from_snapshots(former, anew), statements
            former = found

    with connections(settings, demo=False) as opened:
        options = worker_options(settings, opened)

        def reader() -> SnapshotReader:
            return SnapshotReader(settings, options, opened.plan, exposure(settings, options, opened.plan))

        asyncio.run(work())


def assert_same(one: SchemaSnapshot, other: SchemaSnapshot, statements: list[str]) -> None:
    said = "\n".join(statements[-12:])
    assert [shown(each) for each in one.endpoints] == [shown(each) for each in other.endpoints], said
    assert one == other, said


def shown(endpoint: Endpoint) -> tuple[object, ...]:
    return endpoint.name, endpoint.routine.identity, endpoint.session, endpoint.routine.comment


def test_a_snapshot_is_equal_after_its_parts_are_joined(shelves: Database) -> None:
    """What endpoints share they share afterwards, wherever the parts end."""
    shelves.execute(
        """
        do $$ begin for n in 1..600 loop
          execute format('create function a.g%s(_id int, _name text) returns a.pair language sql as %L',
                         n, 'select null::a.pair');
          execute format('comment on function a.g%s(int, text) is %L', n, 'HTTP GET');
        end loop; end $$
        """
    )
    snapshot = read_snapshot(shelves)
    assert len(snapshot.endpoints) > 2 * ENDPOINTS
    parts = list(parts_of(snapshot))
    assert len(parts) == -(-len(snapshot.endpoints) // ENDPOINTS) + 1
    reader = SnapshotParts()
    *others, read = map(reader.take, parts)
    assert others == [None] * len(others)
    assert read == snapshot
    made = [one for one in snapshot.endpoints if one.routine.name.startswith("g")]
    assert len({id(one.shape) for one in made}) == len({id(one.options) for one in made}) == 1
    made = [one for one in (read or snapshot).endpoints if one.routine.name.startswith("g")]
    assert len({id(one.shape) for one in made}) == len({id(one.options) for one in made}) == 1
    empty = SchemaSnapshot(3, (), {})
    assert SnapshotParts().take(next(parts_of(empty))) == empty


def test_a_change_has_the_example_requests_of_the_new_snapshot() -> None:
    old = SchemaSnapshot(1, (), {}, example_requests=(("one.http", "GET /one"),))
    new = SchemaSnapshot(2, (), {}, example_requests=(("two.http", "GET /two"),))
    assert SnapshotChange.from_snapshots(old, new).apply_to(old) == new


def test_a_change_of_another_snapshot_is_refused() -> None:
    one, two, three = (SchemaSnapshot(number, (), {}) for number in (1, 2, 3))
    assert SnapshotChange.from_snapshots(one, two).apply_to(one) == two
    with pytest.raises(ValueError, match="is a change of 2, but this process has 1"):
        SnapshotChange.from_snapshots(two, three).apply_to(one)
