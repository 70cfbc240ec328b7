"""Every route of an application that uses all capabilities, as every kind of caller."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.identity_provider import IdentityProvider
from tests.harness.service import Service
from tests.harness.upstream import Upstream
from tests.http import access_walk
from tests.http.conftest import Serve

pytestmark = pytest.mark.attack


@pytest.fixture(scope="module")
def service(
    database: Database,
    serve: Serve,
    upstream: Upstream,
    provider: IdentityProvider,
    tmp_path_factory: pytest.TempPathFactory,
) -> Service:
    settings = access_walk.settings(tmp_path_factory.mktemp("files"), upstream, provider)
    return serve(database, access_walk.SQL, settings)


@pytest.fixture(scope="module")
def routes(service: Service) -> list[access_walk.Route]:
    return access_walk.routes_of(service)


@pytest.mark.parametrize("http2", [False, True], ids=["http/1.1", "http/2"])
def test_every_route_admits_only_its_intended_callers(
    service: Service, routes: list[access_walk.Route], provider: IdentityProvider, http2: bool
) -> None:
    assert list(access_walk.walk(service, routes, provider, http2=http2)) == []


@pytest.mark.slow
def test_console_actions_are_refused_without_allow_actions(
    own_database: Database,
    serve_once: Serve,
    upstream: Upstream,
    provider: IdentityProvider,
    tmp_path: Path,
) -> None:
    settings = access_walk.settings(tmp_path, upstream, provider)
    service = serve_once(own_database, access_walk.SQL, {**settings, **access_walk.READ_ONLY})
    assert list(access_walk.read_only_console(service)) == []


def test_events_reach_their_recipients(service: Service) -> None:
    others = ["for all"]
    expected = {"anonymous": others, "plain": others, "revoked session": others, "boss": ["classified", "for all"]}
    assert access_walk.heard(service) == expected
