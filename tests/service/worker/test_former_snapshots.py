"""What a reload replaces goes, although the garbage collector does not visit the parts of a snapshot."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rowcall.service.command.serve import connections
from rowcall.service.options.from_settings import worker_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.request.subrequests import Subrequests
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.worker.application import Application
from tests.harness.database import Database
from tests.harness.snapshots import read_snapshot, settings_of

SQL = """
create function report(_text text) returns void language plpgsql as $$ begin raise info '%', _text; end $$;
comment on function report(text) is E'HTTP POST\\nallow_anonymous\\nsse progress';
create function ahead() returns text language sql as $$ select 'x' $$;
comment on function ahead() is E'HTTP GET\\nallow_anonymous\\nproxy POST http://localhost:9';
"""
SETTINGS = {"Service:ProxyOptions:Enabled": "true", "Service:HttpClientOptions:Enabled": "true"}


def test_former_snapshots_are_released_after_reloads(database: Database, tmp_path: Path) -> None:
    database.execute(SQL)
    settings = settings_of(database, SETTINGS)
    with connections(settings, demo=False) as opened:
        options = replace(worker_options(settings, opened), store=str(tmp_path))
    snapshot = read_snapshot(database, SETTINGS)
    assert asyncio.run(_left(options, snapshot)) == [(False, False), (False, False), (True, True)]


async def _left(options: WorkerOptions, snapshot: SchemaSnapshot) -> list[tuple[bool, bool]]:
    """For each of three snapshots, after it was served: whether its table and its internal subrequests still exist."""
    application = Application(options)
    made = []
    for number in range(1, 4):
        application.prepare(replace(snapshot, number=number))
        application.activate_snapshot(number)
        made.append(_used(application))
    left = [(table() is not None, calls() is not None) for table, calls in made]
    await application.close()
    return left


def _used(application: Application) -> tuple[Callable[[], object], Callable[[], object]]:
    """With the steps of all that is served."""
    table = application._table
    assert table.streams
    assert table.internal_routing is not None
    calls: Subrequests = table.steps._services.send_subrequest.__self__  # type: ignore[attr-defined]
    for steps, router in ((table.steps, table.router), (calls._steps, table.internal_routing.router)):
        assert all(steps[id(route)] for route in router.routes)
    return weakref.ref(table), weakref.ref(calls)
