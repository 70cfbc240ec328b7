"""The dependency graph against a simple twin, while functions are created, replaced and dropped in any order.

The twin knows which names a text uses and what it does, because it has written the text; it follows them without any
index or memory. After each step the invariants of docs/internals/session-effects.md hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rowcall.core.catalogue.session_effects import SessionEffect, SessionEffects
from rowcall.core.sqlfile.session_effect_scan import scan
from rowcall.core.sqlfile.session_effects import CatalogueObject, DependencyGraph
from tests.harness.effort import examples

EFFECTS = {
    "select 1": frozenset(),
    "perform set_config('a.b', 'x', true)": frozenset(),
    "set work_mem = '1MB'": {SessionEffect.SETTINGS},
    "listen x": {SessionEffect.CHANNELS},
    "select pg_advisory_lock(1)": {SessionEffect.LOCKS},
}
READS = "select lastval()"
FUNCTIONS = range(1, 4)
RELATIONS = range(11, 13)
NAMES = {oid: f"f{oid}" if oid in FUNCTIONS else f"r{oid}" for oid in (*FUNCTIONS, *RELATIONS)}


@dataclass(frozen=True)
class Body:
    """What a text does. Rare: most bodies do nothing but use others."""

    effect: str = "select 1"
    reads: bool = False
    uses: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    readable: bool = True

    @property
    def text(self) -> str:
        uses = [f"select {NAMES[oid]}()" if oid in FUNCTIONS else f"select a from {NAMES[oid]}" for oid in self.uses]
        writes = [f"insert into {NAMES[oid]} values (1)" for oid in self.writes]
        return "; ".join((self.effect, *([READS] if self.reads else ()), *sorted(uses), *sorted(writes)))

    @property
    def effects(self) -> set[SessionEffect]:
        return {*EFFECTS[self.effect], *(() if self.readable else (SessionEffect.ANYTHING,))}


def rarely(strategy: st.SearchStrategy[frozenset[int]]) -> st.SearchStrategy[frozenset[int]]:
    return st.one_of(st.just(frozenset[int]()), st.just(frozenset[int]()), strategy)


SOME = st.frozensets(st.sampled_from([*NAMES]), max_size=1)
BODIES = st.builds(
    Body,
    effect=st.sampled_from(["select 1", "select 1", "select 1", *EFFECTS]),
    reads=st.sampled_from([False] * 5 + [True]),
    uses=SOME,
    writes=rarely(st.frozensets(st.sampled_from(RELATIONS), min_size=1, max_size=1)),
    readable=st.sampled_from([True] * 7 + [False]),
)


@dataclass(frozen=True)
class Links:
    """What a relation uses without naming it."""

    body: Body
    functions: frozenset[int] = frozenset()
    triggers: frozenset[int] = frozenset()
    referenced: frozenset[int] = frozenset()


LINKS = st.builds(
    Links,
    body=st.builds(Body, uses=SOME),
    functions=rarely(st.frozensets(st.sampled_from(FUNCTIONS), max_size=1)),
    triggers=rarely(st.frozensets(st.sampled_from(FUNCTIONS), max_size=1)),
    referenced=rarely(st.frozensets(st.sampled_from(RELATIONS), max_size=1)),
)


@dataclass(frozen=True)
class Database:
    """The twin: bodies of functions and of relations by oid, and what every statement may use."""

    functions: dict[int, Body]
    relations: dict[int, Links]
    everywhere: frozenset[int]
    checks: Body

    def effects(self, functions: Iterable[int], relations: Iterable[int], *, writes: bool) -> Outcome:
        """Return the combined effects of everything that can be reached."""
        seen: set[int] = set()
        bodies = [self.checks]
        waiting = [*functions, *relations, *self.everywhere, *self._named(self.checks)]
        while waiting:
            oid = waiting.pop()
            if oid in seen:
                continue
            seen.add(oid)
            if oid not in self.functions and oid not in self.relations:
                return Outcome(frozenset({SessionEffect.ANYTHING}), True, frozenset())
            links = self.relations.get(oid) or Links(self.functions[oid])
            bodies.append(links.body)
            waiting += [*self._named(links.body), *links.functions]
            if writes:
                waiting += [*links.triggers, *links.referenced]
        if not writes and any(body.writes for body in bodies):
            return self.effects(functions, relations, writes=True)
        effects = frozenset().union(*(body.effects for body in bodies))
        return Outcome(
            effects,
            any(body.reads or not body.readable for body in bodies),
            frozenset() if effects else frozenset(seen),
        )

    def _named(self, body: Body) -> list[int]:
        """Names of functions that do not exist are those of something built in."""
        return [oid for oid in (*body.uses, *body.writes) if oid in self.functions or oid in self.relations]

    def graph(self) -> DependencyGraph:
        return DependencyGraph(
            (function(oid, body) for oid, body in self.functions.items()),
            (relation(oid, links) for oid, links in self.relations.items()),
            sorted(self.everywhere),
            [self.checks.text],
            "everywhere",
        )


@dataclass(frozen=True)
class Outcome:
    """Session effects without their reason, which depends on the order of the traversal."""

    effects: frozenset[SessionEffect]
    reads: bool
    reached: frozenset[int]
    mark: str = field(default="", compare=False)
    """A fingerprint of the definitions of `reached`."""

    @classmethod
    def of(cls, found: SessionEffects) -> Outcome:
        reached = frozenset((*found.dependencies.functions, *found.dependencies.relations))
        return cls(frozenset(found.traces), found.reads_sequences, reached, found.dependencies.mark)


def function(oid: int, body: Body) -> CatalogueObject:
    name = NAMES[oid]
    return CatalogueObject(oid, (name,), name, (body.text,), body.text, f"select {name}()", readable=body.readable)


def relation(oid: int, links: Links) -> CatalogueObject:
    return CatalogueObject(
        oid,
        (NAMES[oid],),
        NAMES[oid],
        (links.body.text,),
        links.body.text,
        f"select from {NAMES[oid]}",
        functions=tuple(links.functions),
        triggers=tuple(links.triggers),
        referenced=tuple(links.referenced),
    )


def broken_invariants(graph: DependencyGraph) -> list[str]:
    """Return a sentence for each invariant that does not hold within one graph."""
    broken = []
    keys = [*((True, item) for item in graph.functions.values()), *((False, item) for item in graph.relations.values())]
    names: dict[str, set[tuple[bool, int]]] = {}
    for is_function, item in keys:
        for name in item.names:
            names.setdefault(name, set()).add((is_function, item.oid))
        if graph.oids_by_name(item.shown, function=is_function).count(item.oid) != 1:
            broken.append(f"session-1: {item.shown} is not found by its name")
    if names != {name: set(found) for name, found in graph._by_name.items()}:
        broken.append("session-1: the index by name is not that of the objects")
    if any(
        oid not in (graph.functions if kind else graph.relations)
        for (kind, _), oids in graph._qualified.items()
        for oid in oids
    ):
        broken.append("session-1: a name leads to an object that is gone")
    if any(scan(text) != found for text, found in graph._scans.items()):
        broken.append("session-2: a remembered scan is not that of its text")
    for text, plain in graph._plain.items():
        found = scan(text)
        nothing = not (found.traces or found.reads_sequences or found.writes or found.names & names.keys())
        if plain != nothing:
            broken.append(f"session-2: the text {text!r} is said to use {'nothing' if plain else 'something'}")
    return broken


class GraphModel(RuleBasedStateMachine):
    database = Database({}, {}, frozenset(), Body())
    graph = DependencyGraph()

    @initialize(
        functions=st.dictionaries(st.sampled_from(FUNCTIONS), BODIES),
        relations=st.fixed_dictionaries(dict.fromkeys(RELATIONS, LINKS)),
        everywhere=rarely(st.frozensets(st.sampled_from(FUNCTIONS), max_size=1)),
        checks=st.builds(Body, uses=rarely(st.frozensets(st.sampled_from(FUNCTIONS), max_size=1))),
    )
    def read(
        self, functions: dict[int, Body], relations: dict[int, Links], everywhere: frozenset[int], checks: Body
    ) -> None:
        self.database = Database(functions, relations, everywhere, checks)
        self.graph = self.database.graph()

    @rule(changed=st.dictionaries(st.sampled_from(FUNCTIONS), BODIES, min_size=1, max_size=2), asked=st.booleans())
    def change(self, changed: dict[int, Body], asked: bool) -> None:
        self._apply({**self.database.functions, **changed}, changed, (), asked)

    @rule(oid=st.sampled_from(FUNCTIONS), asked=st.booleans())
    def drop(self, oid: int, asked: bool) -> None:
        if oid in self.database.functions:
            left = {key: body for key, body in self.database.functions.items() if key != oid}
            self._apply(left, {}, (oid,), asked)

    @rule(links=st.tuples(st.sampled_from(RELATIONS), LINKS))
    def change_relation(self, links: tuple[int, Links]) -> None:
        """Everything is read again; scans are remembered."""
        self.database = replace(self.database, relations={**self.database.relations, links[0]: links[1]})
        new = self.database.graph()
        new.remember(self.graph)
        self.graph = new

    def _apply(
        self, functions: dict[int, Body], changed: dict[int, Body], removed: tuple[int, ...], asked: bool
    ) -> None:
        """asked: all effects were computed before, so that all texts are scanned."""
        before = self._all(self.graph) if asked else {}
        was = self.graph
        result = self.graph.with_functions({oid: function(oid, body) for oid, body in changed.items()}, removed)
        self.database = replace(self.database, functions=functions)
        self.graph = result.dependency_graph
        after = self._all(self.graph)
        for key, effects in before.items():
            if result.affected is not None and key[:2] not in result.affected:
                assert (after[key], after[key].mark) == (effects, effects.mark), (
                    f"session-3: {key} has changed without being affected"
                )
        if asked:
            assert self._all(was) == before, "session-4: the graph before the change is not as it was"

    @invariant()
    def invariants_hold(self) -> None:
        assert broken_invariants(self.graph) == []

    @invariant()
    def effects_are_those_of_the_twin(self) -> None:
        for (is_function, oid, writes), found in self._all(self.graph).items():
            expected = self.database.effects([oid] * is_function, [oid] * (not is_function), writes=writes)
            assert found == expected, NAMES[oid]
        both = [*self.database.functions][:2]
        if both:
            assert Outcome.of(self.graph.of_functions(both)) == self.database.effects(both, (), writes=False)
        anew = self._all(self.database.graph())
        assert all(found.mark == anew[key].mark for key, found in self._all(self.graph).items())

    def _all(self, graph: DependencyGraph) -> dict[tuple[bool, int, bool], Outcome]:
        functions = {(True, oid, False): Outcome.of(graph.of_functions([oid])) for oid in graph.functions}
        return functions | {
            (False, oid, writes): Outcome.of(graph.of_relations([oid], writes=writes))
            for oid in graph.relations
            for writes in (False, True)
        }


TestGraphModel = GraphModel.TestCase
TestGraphModel.settings = settings(max_examples=examples(600), stateful_step_count=10, deadline=None)
