"""The services that step factories use, and the type of step factories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.ext.rendering.codecs import Codecs
from rowcall.service.database.call import Hear
from rowcall.service.database.database import Database
from rowcall.service.database.replicas.replicas import Replicas
from rowcall.service.http_client.messages import Headers, HttpResponse
from rowcall.service.identity.identity import Identity
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.request_context.drain_state import DrainState
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.shared_state.bounded_cache import BoundedCache
from rowcall.service.shared_state.cache_backends import CacheBackends
from rowcall.service.shared_state.host_state import HostState

if TYPE_CHECKING:
    from rowcall.service.http_client.client import Client


class SubrequestSender(Protocol):
    """Sends an internal subrequest: method, path with query, headers, body, and the outer request context → the
    response of an endpoint of this service.

    written: path and query in the comment, with `{…}` in place of values of the client; None: the path has no such
    values. An `internal` endpoint is only called if the comment itself names its path; values of the client cannot
    select it.
    """

    def __call__(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes | None,
        outer: RequestContext,
        /,
        *,
        written: str | None = None,
    ) -> Awaitable[HttpResponse]: ...


def _no_listener(_endpoint: Endpoint) -> Hear | None:
    return None


@dataclass(frozen=True, slots=True)
class Services:
    """The services that step factories may use."""

    options: WorkerOptions
    database: Database
    codecs: Codecs
    """How values are rendered; in responses, numbers may be rendered as texts (`answer_codecs`)."""
    auth: Identity
    caches: CacheBackends
    host: HostState
    others: Mapping[str, tuple[Database, Codecs, Codecs | None]] = field(default_factory=dict)
    """Databases besides the main one, and how their values are rendered, by case-folded name of the connection."""
    safe_codecs: Codecs | None = None
    """How values of responses are rendered, if that differs."""
    hear: Callable[[Endpoint], Hear | None] = _no_listener
    """Makes the notice listener for everything that an endpoint runs; None for most endpoints."""
    client: Client | None = None
    """The HTTP client, if endpoints may make outgoing requests."""
    send_subrequest: SubrequestSender | None = None
    """Calls an endpoint of this service."""
    limiting: Callable[[str | None], Step | None] | None = None
    """Makes the step that acquires a permit of a rate limiter policy by name, for paths that are no endpoints."""
    type_answers: BoundedCache | None = None
    """Cached responses to the requests of HTTP types, if they are cached."""
    limited: bool = True
    """Rate limits count these requests; internal subrequests are not counted (limits-7)."""

    job_runs: bool = False
    """These requests are attempts of jobs, which their scopes have (`service.jobs`)."""
    joint: bool = False
    """These requests share one transaction, which their scopes have (`service.batch`)."""

    drain_state: DrainState = field(default_factory=DrainState)
    """The drain state of the worker."""

    replicas: Replicas | None = None
    """Replicas of the main database, if there are any."""
    main: Database | None = None
    """The main database, if `database` is another."""

    @property
    def main_database(self) -> Database:
        """The main database, also if these services are for endpoints on another one."""
        return self.main or self.database

    @property
    def answer_codecs(self) -> Codecs:
        """How values of responses are rendered."""
        return self.safe_codecs or self.codecs

    def has_connection(self, connection: str | None) -> bool:
        """Return whether endpoints may use this connection. None: the main one."""
        return connection is None or connection.casefold() in (*self.options.main_names, *self.others)

    def for_connection(self, connection: str | None) -> Services:
        """Return the services for endpoints on this connection: with its database and codecs; unchanged for the main
        one (None) and for an unknown one (see `has_connection`)."""
        other = self.others.get((connection or "").casefold())
        return (
            self
            if other is None
            else replace(self, database=other[0], codecs=other[1], safe_codecs=other[2], main=self.database)
        )


Factory = Callable[[Endpoint, Services], Step | tuple[Step, ...] | None]
