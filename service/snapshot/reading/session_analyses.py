"""Session effects of endpoints, computed again only for those whose objects have changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.result_types import of_any_user_type
from rowcall.core.sqlfile.session_effects import session_effects
from rowcall.core.sqlfile.source import FileSource
from rowcall.service.snapshot.reading.catalogues import Catalogues
from rowcall.service.snapshot.reading.places import Places


class _AnalysedEndpoint(NamedTuple):
    """An endpoint without and with its session effects. lasts: the analysis is valid until an object on which the
    endpoint depends changes; otherwise only for one reading.
    """

    endpoint: Endpoint
    analysed: Endpoint
    lasts: bool


class SessionAnalyses:
    """The analyses of all endpoints, over all readings."""

    def __init__(self, places: Places, catalogues: Catalogues) -> None:
        self._places = places
        self._catalogues = catalogues
        self._analyses: dict[int, _AnalysedEndpoint] = {}
        """By id of the endpoint."""

    def analyse(self, groups: Iterable[tuple[str, Iterable[Endpoint]]]) -> tuple[Endpoint, ...]:
        """Return all endpoints with their session effects.

        groups: pairs of the place where endpoints were found, and the endpoints. If an endpoint and its effects are
        unchanged, the same object is returned as before: the change for the workers is computed by identity.
        """
        before, self._analyses = self._analyses, {}
        analysed: list[Endpoint] = []
        for found, endpoints in groups:
            affected = self._catalogues.affected.get(found)
            touched = frozenset(oid for _, oid in affected or ())
            for endpoint in endpoints:
                analysis = before.get(id(endpoint))
                if analysis is None or not analysis.lasts or affected is None or endpoint.routine.oid in touched:
                    analysis = self._analyse(found, endpoint, analysis)
                self._analyses[id(endpoint)] = analysis
                analysed.append(analysis.analysed)
        return tuple(analysed)

    def _analyse(self, found: str, endpoint: Endpoint, former: _AnalysedEndpoint | None) -> _AnalysedEndpoint:
        """Return the endpoint with its session effects. found: the place where it was found. former: its last analysis,
        which is returned if the effects are the same; None: there is none.
        """
        place = self._places.of(endpoint)
        dependency_graph = None if place is None else self._catalogues.dependency_graphs.get(place)
        placed = self._at_its_place(found, endpoint) if former is None else former.analysed
        session = (
            endpoint.session
            if dependency_graph is None
            else session_effects(placed, dependency_graph, by_name=place != found)
        )
        if former is not None and former.analysed.session == session:
            return former
        lasts = dependency_graph is not None and place == found and not isinstance(endpoint.routine.source, FileSource)
        return _AnalysedEndpoint(endpoint, replace(placed, session=session), lasts)

    def _at_its_place(self, found: str, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint unchanged if it runs where it was found. Otherwise, return it with result shapes that
        accept any user-defined type, because these types may have other oids where it runs. found: the place where it
        was found."""
        if self._places.of(endpoint) == found:
            return endpoint
        table = endpoint.table_shape
        return replace(
            endpoint,
            shape=of_any_user_type(endpoint.shape),
            table_shape=None if table is None else of_any_user_type(table),
        )
