"""Damaged key files, and clock steps: keys and sessions survive both."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rowcall.core.protection.key_ring import SECRET, Key, element_text, plain_secret
from tests.harness.clock import WORKS, WallClock
from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens, with_cookie
from tests.http.test_key_ring_shared import DAY, in_folder, is_accepted

HOUR = 3600
LOGIN_SCHEMES = ("Cookies", "BearerToken")


def damage(folder: Path, kind: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / "key-00000000-0000-0000-0000-000000000000.json"
    match kind:
        case "no UTF-8":
            path.write_bytes(b"\xff\xfe\x00{}")
        case "a folder":
            path.mkdir()
        case "endless":
            path.write_text('{"format":"rowcall-key-1","id":"00000000-0000-0000-0000-000000000000","created":1e999}')
        case "empty":
            path.write_bytes(b"")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["no UTF-8", "a folder", "endless", "empty"])
def test_damaged_key_file_does_not_affect_other_keys(
    own_database: Database, serve_once: Serve, tmp_path: Path, kind: str
) -> None:
    """Neither at the start nor while the service runs: a key that another host creates later is still found."""
    own_database.execute(member_sql())
    folder = tmp_path / "keys"
    damage(folder, kind)
    first = serve_once(own_database, settings=in_folder(folder))
    now = time.time()
    newer = Key(os.urandom(16), now, now, now + 90 * DAY, os.urandom(SECRET))
    (folder / f"{newer.name}.json").write_text(element_text(newer, plain_secret(newer.secret)))
    second = serve_once(own_database, settings=in_folder(folder))
    made = bearer(tokens(second, "BearerToken")["accessToken"])
    assert is_accepted(first, made)
    first.wait_for_log("key")


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WallClock:
    if not WORKS:
        pytest.skip("nothing can be loaded in front of the C library")
    made = WallClock(tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


def signed_in(service: Service) -> dict[str, str]:
    return with_cookie(service)


@pytest.mark.parametrize("step", [-HOUR, pytest.param(-3 * int(DAY), marks=pytest.mark.slow), 400 * int(DAY)])
def test_sign_in_works_after_clock_steps(
    own_database: Database, serve_once: Serve, clock: WallClock, step: int
) -> None:
    """No key of the ring may be active then; in that case, one is created at once."""
    own_database.execute(member_sql())
    service = serve_once(own_database, settings=EVERY_SCHEME, workers=2)
    assert is_accepted(service, signed_in(service))
    clock.move(step)
    assert is_accepted(service, signed_in(service))
    if abs(step) > DAY:
        wait_until(lambda: service.log.count("was added to the key ring") == 2, "a key for this time has been made")
    clock.move(0)
    assert is_accepted(service, signed_in(service))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", LOGIN_SCHEMES)
def test_token_from_the_future_is_refused_even_if_cached(
    own_database: Database, serve_once: Serve, clock: WallClock, scheme: str
) -> None:
    own_database.execute(member_sql())
    service = serve_once(own_database, settings=EVERY_SCHEME)
    clock.move(HOUR)
    made = signed_in(service) if scheme == "Cookies" else bearer(tokens(service, scheme)["accessToken"])
    assert is_accepted(service, made)
    clock.move(0)
    assert not is_accepted(service, made)
    clock.move(HOUR)
    assert is_accepted(service, made)
