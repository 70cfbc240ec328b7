"""Interface between the test runner and the execution of endpoints: a request of a test, and its response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rowcall.core.testing.request import HttpBlock, Stub
from rowcall.service.testing.database import TestDatabase
from rowcall.service.testing.session import Session, SessionPool


class CallRefusedError(Exception):
    """A test cannot call the endpoint, or cannot run jobs; the message says why."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a request of a test."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    """Names spelled for jsonb: HTTP ignores their case, but jsonb does not."""
    body: str | None = None
    found: bool = True
    """An endpoint has responded; False: there is none for the request."""
    unexpected: tuple[str, ...] = ()
    """Requests to other services without a matching stub."""

    def header(self, lowered: str) -> str | None:
        """Return the first value of a header, or None. lowered: its lower-case name."""
        return next((value for name, value in self.headers if name.lower() == lowered), None)


class Caller(Protocol):
    """Executes one request at a time: it has one connection to the database, that of the running test."""

    @property
    def database(self) -> TestDatabase:
        """The database on which requests run. `FileRunner` sets its `session` to that of the running file."""
        ...

    @property
    def sessions(self) -> SessionPool:
        """The sessions of the files that it runs one after another."""
        ...

    async def call(self, block: HttpBlock, stubs: Sequence[Stub]) -> Reply:
        """Run a request against its endpoint, and return the response. stubs: responses of other services. Raises
        CallRefusedError if tests cannot call the endpoint.
        """
        ...

    async def run_jobs(self, session: Session, stubs: Sequence[Stub]) -> Sequence[str]:
        """Run the jobs that are due. Return the requests to other services without a matching stub. session: of the
        running file. stubs: responses of other services.

        Raises CallRefusedError if jobs are off, or too many run, and `psycopg.Error`.
        """
        ...
