"""Session effect analysis: what a run of a routine may leave in its session.

The analysis follows a dependency graph: the session effects of a function are those of its source and of all functions,
triggers, rules, policies, defaults and checks to which the names in it can refer, in any schema. Dynamic SQL, C
functions outside extensions that are known to be harmless, and languages that cannot be parsed count as having any
effect.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rowcall.core.catalogue.catalog import Volatility
from rowcall.core.catalogue.session_effects import Dependencies, SessionEffect, SessionEffects, mark_of
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.sqlfile.session_effect_scan import Scan, scan
from rowcall.core.sqlfile.source import FileSource

HARMLESS_EXTENSIONS = frozenset(
    {
        "btree_gin", "btree_gist", "citext", "cube", "earthdistance", "fuzzystrmatch", "hstore", "intarray", "isn",
        "ltree", "pg_trgm", "pgcrypto", "plpgsql", "seg", "unaccent", "uuid-ossp",
    }
)  # fmt: skip
"""Extensions whose C functions have no side effects."""


@dataclass(frozen=True, slots=True)
class CatalogueObject:
    """A function or a relation, with the facts that the analysis needs.

    names: those by which a text may refer to it, without schema. shown: `schema.name`. texts: SQL of its definition.
    functions, relations: oids of objects that it uses without naming them in `texts`. triggers: oids of functions that
    run if it is written. referenced: oids of relations that are read if it is written. mark: fingerprint of its
    definition. mention: a query that names it. readable: `texts` are its whole definition.
    """

    oid: int
    names: tuple[str, ...]
    shown: str
    texts: tuple[str, ...]
    mark: str
    mention: str
    functions: tuple[int, ...] = ()
    relations: tuple[int, ...] = ()
    triggers: tuple[int, ...] = ()
    referenced: tuple[int, ...] = ()
    readable: bool = True
    why: str = ""
    """Why `texts` are not its whole definition."""


Key = tuple[bool, int]
"""Whether the object is a function, and its oid."""


@dataclass(frozen=True, slots=True)
class DependencyGraphChange:
    """A dependency graph after a change.

    affected: keys of the objects whose session effects may have changed; None: the effects of every object may have
    changed.
    """

    dependency_graph: DependencyGraph
    affected: frozenset[Key] | None


NOT_THERE = SessionEffects(reason="it could not be found where it runs")
"""Effects of a routine that does not exist in the database on which it runs."""


class DependencyGraph:
    """All user-defined functions and relations, and the objects that any statement can use without naming them.

    everywhere: oids of the functions of casts, operators and the like. texts: SQL of the checks of domains. mark:
    fingerprint of `everywhere` and `texts`. Scans of texts are cached.
    """

    def __init__(
        self,
        functions: Iterable[CatalogueObject] = (),
        relations: Iterable[CatalogueObject] = (),
        everywhere: Sequence[int] = (),
        texts: Sequence[str] = (),
        mark: str = "",
    ) -> None:
        self.functions = {item.oid: item for item in functions}
        self.relations = {item.oid: item for item in relations}
        self._everywhere = CatalogueObject(
            0, (), "a cast, operator or domain", tuple(texts), mark, "", tuple(everywhere)
        )
        self._scans: dict[str, Scan] = {}
        self._plain: dict[str, bool] = {}
        """Text → whether it has no session effects, reads no sequence, writes nothing, and names no object of the
        graph."""
        self._qualified: defaultdict[tuple[bool, str], list[int]] = defaultdict(list)
        self._by_name: defaultdict[str, list[tuple[bool, int]]] = defaultdict(list)
        for is_function, nodes in ((True, self.functions), (False, self.relations)):
            for node in nodes.values():
                self._qualified[is_function, node.shown].append(node.oid)
                for name in node.names:
                    self._by_name[name].append((is_function, node.oid))

    def with_functions(self, changed: Mapping[int, CatalogueObject], removed: Iterable[int]) -> DependencyGraphChange:
        """Return the graph after functions were created, removed, or changed in anything except their names. This
        graph stays as it is.

        changed: by oid, including those created. removed: oids of functions of this graph; KeyError for others.
        """
        new = copy.copy(self)
        new._plain = {}
        new.functions, gone = dict(self.functions), []
        new._qualified, new._by_name = self._qualified.copy(), self._by_name.copy()
        for oid in removed:
            gone.append(new.functions.pop(oid))
            new._name(gone[-1], exists=False)
        for oid, node in changed.items():
            if oid not in self.functions:
                new._name(node, exists=True)
            new.functions[oid] = node
        return DependencyGraphChange(new, new._affected_keys([*gone, *changed.values()]))

    def _name(self, node: CatalogueObject, *, exists: bool) -> None:
        """Add a function to the indexes by name, or remove it. exists: False: the function was removed.

        The lists are shared with the previous graph, so they are replaced and not changed. Their order has no meaning.
        """
        oids = self._qualified[True, node.shown]
        self._qualified[True, node.shown] = [*oids, node.oid] if exists else [item for item in oids if item != node.oid]
        for name in node.names:
            keys, key = self._by_name[name], (True, node.oid)
            self._by_name[name] = [*keys, key] if exists else [item for item in keys if item != key]
            if not self._by_name[name]:
                del self._by_name[name]

    def _affected_keys(self, changed: Iterable[CatalogueObject]) -> frozenset[Key] | None:
        """Return the keys of the changed functions and of all objects that refer to one of them, directly or through
        others. None: every statement does, through a cast, operator or domain.

        Texts that have not been scanned yet are ignored: no result rests on them.
        """
        result: set[Key] = set()
        functions: set[int] = set()
        relations: set[int] = set()
        names: set[str] = set()
        pending = [(True, item) for item in changed]
        everything = [
            *((True, item) for item in self.functions.values()),
            *((False, item) for item in self.relations.values()),
        ]
        while pending:
            for is_function, node in pending:
                result.add((is_function, node.oid))
                (functions if is_function else relations).add(node.oid)
                names.update(node.names)
            if self._refers_to(self._everywhere, functions, relations, names):
                return None
            everything = [item for item in everything if (item[0], item[1].oid) not in result]
            pending = [item for item in everything if self._refers_to(item[1], functions, relations, names)]
        return frozenset(result)

    def _refers_to(self, node: CatalogueObject, functions: set[int], relations: set[int], names: set[str]) -> bool:
        """Return whether an object refers directly to one of these functions or relations, by oid or in its scanned
        texts by name. functions, relations: oids. names: of both, without schema."""
        for text in node.texts:
            seen = self._scans.get(text)
            if seen is not None and not seen.names.isdisjoint(names):
                return True
        return not (
            functions.isdisjoint(node.functions)
            and functions.isdisjoint(node.triggers)
            and relations.isdisjoint(node.relations)
            and relations.isdisjoint(node.referenced)
        )

    def oids_by_name(self, name: str, *, function: bool) -> list[int]:
        """Return the oids of the functions or relations with a name; empty if there are none. name: `schema.name`.
        function: return functions; otherwise relations."""
        return self._qualified.get((function, name), [])

    def of_functions(self, oids: Sequence[int]) -> SessionEffects:
        """Return the combined session effects of functions with these oids; without oids, `NOT_THERE`. An unknown oid
        counts as any effect."""
        alone = self._of_lone_function(oids[0]) if len(oids) == 1 else None
        if alone is not None:
            return alone
        return self._combined_effects([(True, oid) for oid in oids], ()) if oids else NOT_THERE

    def _of_lone_function(self, oid: int) -> SessionEffects | None:
        """Return the session effects of a function without effects that refers to no other object; None: the function
        is unknown, or may have effects or refer to an object.

        Most functions refer to no other. The result is that of `_combined_effects`, in a third of the time.
        """
        node = self.functions.get(oid)
        if node is None or not all(map(self._refers_to_nothing, (node, self._everywhere))):
            return None
        mark = mark_of({f"f{oid}": node.mark}, self._everywhere.mark)
        return SessionEffects(frozenset(), False, "", Dependencies((oid,), (), mark, (node.mention,)))

    def _refers_to_nothing(self, node: CatalogueObject) -> bool:
        """Return whether an object is known to have no session effects and to refer to no other object."""
        if not node.readable or node.functions or node.relations:
            return False
        return all(map(self._is_without_effects, node.texts))

    def _is_without_effects(self, text: str) -> bool:
        """Return whether a text has no session effects, reads no sequence, writes nothing, and names no object of the
        graph."""
        known = self._plain.get(text)
        if known is None:
            result = self._scan(text)
            nothing = not (result.traces or result.reads_sequences or result.writes)
            known = self._plain[text] = nothing and not any(name in self._by_name for name in result.names)
        return known

    def of_relations(self, oids: Sequence[int], *, writes: bool = True) -> SessionEffects:
        """Return the combined session effects of statements on relations with these oids; without oids, `NOT_THERE`.
        An unknown oid counts as any effect. writes: the statements may write."""
        return self._combined_effects([(False, oid) for oid in oids], (), writes=writes) if oids else NOT_THERE

    def of_texts(self, texts: Sequence[str]) -> SessionEffects:
        """Return the combined session effects of statements. texts: their SQL."""
        return self._combined_effects([], texts)

    def _combined_effects(
        self, roots: Sequence[tuple[bool, int]], texts: Sequence[str], *, writes: bool = False
    ) -> SessionEffects:
        """Traverse the graph from `roots` and `texts`, and return the combined effects of all reachable objects. If the
        graph lacks one of them, the result is any effect.

        roots: keys of objects. texts: SQL of statements. writes: whether tables are written, so that the triggers of
        reachable tables run and tables that refer to them are read. If a reachable text writes, this is assumed.
        """
        traces: set[SessionEffect] = set()
        reads = False
        reason = ""
        seen: set[tuple[bool, int]] = set()
        pending: list[tuple[bool, int]] = list(roots)
        own = CatalogueObject(0, (), "its own text", tuple(texts), "", "")
        nodes = [self._everywhere, own]
        while nodes or pending:
            if nodes:
                node = nodes.pop()
            else:
                key = pending.pop()
                if key in seen:
                    continue
                seen.add(key)
                known = (self.functions if key[0] else self.relations).get(key[1])
                if known is None:
                    return SessionEffects(reason="something that it needs could not be read")
                node = known
            scans = [self._scan(text) for text in node.texts]
            left = set().union(*(item.traces for item in scans)) if scans else set()
            if not node.readable:
                left.add(SessionEffect.ANYTHING)
            if left - traces and not reason:
                reason = f"{node.shown}: {node.why or ', '.join(sorted(item.value for item in left))}"
            traces |= left
            reads = reads or not node.readable or any(item.reads_sequences for item in scans)
            if not writes and any(item.writes for item in scans):
                return self._combined_effects(roots, texts, writes=True)
            for item in scans:
                pending += (key for name in item.names if name in self._by_name for key in self._by_name[name])
            pending += ((True, oid) for oid in node.functions)
            pending += ((False, oid) for oid in node.relations)
            if writes:
                pending += ((True, oid) for oid in node.triggers)
                pending += ((False, oid) for oid in node.referenced)
        return SessionEffects(
            frozenset(traces), reads, reason, self._dependencies(seen) if not traces else Dependencies()
        )

    def _dependencies(self, seen: Iterable[tuple[bool, int]]) -> Dependencies:
        """Return the objects on whose definitions the result of an analysis rests. seen: keys of the objects that it
        has reached."""
        functions = tuple(sorted(oid for is_function, oid in seen if is_function))
        relations = tuple(sorted(oid for is_function, oid in seen if not is_function))
        mentions = (
            *(self.functions[oid].mention for oid in functions),
            *(self.relations[oid].mention for oid in relations),
        )
        marks = [(f"f{oid}", self.functions[oid].mark) for oid in functions]
        marks += [(f"r{oid}", self.relations[oid].mark) for oid in relations]
        return Dependencies(functions, relations, mark_of(dict(marks), self._everywhere.mark), mentions)

    def remember(self, other: DependencyGraph) -> None:
        """Replace the cached scans by those of `other` for the texts of this graph's functions and relations. The scan
        of a text never changes. The checks of domains are scanned again when they are needed."""
        self._scans = {
            text: result
            for nodes in (self.functions, self.relations)
            for node in nodes.values()
            for text in node.texts
            if (result := other._scans.get(text)) is not None
        }

    def _scan(self, text: str) -> Scan:
        result = self._scans.get(text)
        if result is None:
            result = self._scans[text] = scan(text)
        return result


def session_effects(endpoint: Endpoint, dependency_graph: DependencyGraph, *, by_name: bool = False) -> SessionEffects:
    """Return the session effects of an endpoint.

    Those of resolved parameters are not included, because their SQL runs on a connection of its own. by_name: the graph
    is that of another database than the one in which the routine was discovered, so that the routine is looked up by
    its name and not by its oid.
    """
    routine = endpoint.routine
    if isinstance(routine.source, FileSource):
        return dependency_graph.of_texts([statement.text for statement in routine.source.statements])
    oids = [routine.oid]
    if by_name:
        oids = dependency_graph.oids_by_name(f"{routine.schema}.{routine.name}", function=routine.source is None)
    if routine.source is None:
        return dependency_graph.of_functions(oids)
    return dependency_graph.of_relations(oids, writes=routine.volatility is Volatility.VOLATILE)
