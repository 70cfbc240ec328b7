"""What a service reports about itself to the consoles of others, as the text of an answer."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from typing import Any

import orjson

from rowcall.service.console.sources import Sources
from rowcall.service.metrics.report import STATUSES
from rowcall.service.metrics.segments import read

_LONGEST = 100
"""Characters of a text in an answer: with all of them escaped, it still fits into a notification (8,000 bytes)."""
_TYPES: Mapping[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}


@dataclass(frozen=True, slots=True)
class HostStatus:
    """The state of a service at one moment. id: random, new at each start of the service. url: of its first public
    listener. workers: number of those that run. configured: number of configured workers. requests, errors: numbers
    since the start; an error is a 5xx response. started: seconds since 1970. clock: seconds of the monotonic clock of
    its host, to compute rates."""

    id: str
    host: str
    pid: int
    application: str
    environment: str
    version: str
    url: str
    workers: int
    configured: int
    requests: float
    errors: float
    started: float
    clock: float

    def to_json(self) -> str:
        """Return the text of an answer, in ASCII."""
        return json.dumps(asdict(self), separators=(",", ":"))


def parse_status(text: str | bytes) -> HostStatus | None:
    """Return the status in an answer; None for another text: every user of the database can write to the channel."""
    try:
        members: Any = orjson.loads(text)
        status = HostStatus(**{field.name: members[field.name] for field in fields(HostStatus)})
    except (ValueError, TypeError, LookupError):
        return None
    for field in fields(HostStatus):
        value = getattr(status, field.name)
        if not isinstance(value, _TYPES[str(field.type)]) or isinstance(value, bool):
            return None
        if isinstance(value, str) and len(value) > _LONGEST:
            return None
    return status


class OwnStatus:
    """The status of this service. Counters are read on request."""

    def __init__(self, sources: Sources, name: str) -> None:
        """name: the id of this start of the service."""
        self._sources = sources
        self._name = name
        self._started = time.time()

    def read(self) -> HostStatus:
        """Return the status now. With many endpoints this takes some time, so it is called in a thread."""
        sources = self._sources
        rows = [
            row for row in read(sources.folder) if row.label[0] == "endpoint" or row.label == ("worker", "unrouted")
        ]
        clock = time.monotonic()
        pids = sources.workers()
        return HostStatus(
            id=self._name,
            host=_short(socket.gethostname()),
            pid=os.getpid(),
            application=_short(sources.options.encryption_name),
            environment=_short(sources.settings.text("EnvironmentName")),
            version=version("rowcall"),
            url=_short(next(iter(sources.urls()), "")),
            workers=sum(pid is not None for pid in pids),
            configured=len(pids),
            requests=sum(row.numbers[status] for row in rows for status in STATUSES),
            errors=sum(row.numbers["5xx"] for row in rows),
            started=self._started,
            clock=clock,
        )


def _short(text: str) -> str:
    return text[:_LONGEST]
