"""What the runner asks of whoever runs endpoints: a request of a test, and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rowcall.core.testing.request import HttpBlock, Stub
from rowcall.service.testing.database import TestDatabase
from rowcall.service.testing.session import SessionPool


class CallRefusedError(Exception):
    """The endpoint is of a kind that a test cannot call."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    """With names as people write them: on the way these have no case, in jsonb they do."""
    body: str | None = None
    found: bool = True
    """An endpoint has answered."""
    unexpected: tuple[str, ...] = ()
    """Requests to other services that no stub answers."""

    def header(self, wanted: str) -> str | None:
        return next((value for name, value in self.headers if name.lower() == wanted), None)


class Caller(Protocol):
    """One at a time: it has one connection to the database, that of the test which runs."""

    @property
    def database(self) -> TestDatabase: ...

    @property
    def sessions(self) -> SessionPool: ...

    async def call(self, block: HttpBlock, stubs: Sequence[Stub]) -> Reply:
        """Raises CallRefusedError."""
        ...
