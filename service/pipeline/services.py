"""What step factories are given, and what they make of it."""

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
    """Method, path with query, headers, body, the exchange that it is for → the answer of an endpoint of this service.

    written: the path with its query as an author wrote it, `{…}` where a client's values stand. They may choose among
    what anybody may call; an endpoint that is `internal` is only found where the author named it. None: all is his.
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
    """What step factories may use."""

    options: WorkerOptions
    database: Database
    codecs: Codecs
    """How values are rendered; numbers of answers may be texts (`answer_codecs`)."""
    auth: Identity
    answers: CacheBackends
    host: HostState
    others: Mapping[str, tuple[Database, Codecs, Codecs | None]] = field(default_factory=dict)
    """Databases besides the main one, and how their values are rendered, by case-folded name of the connection."""
    safe_codecs: Codecs | None = None
    """How values of answers are rendered where that differs."""
    hear: Callable[[Endpoint], Hear | None] = _no_listener
    """What listens to the notices of everything that an endpoint runs; None for most."""
    client: Client | None = None
    """Of requests to other services, where endpoints may make some."""
    send_subrequest: SubrequestSender | None = None
    """Calls an endpoint of this service."""
    limiting: Callable[[str | None], Step | None] | None = None
    """The step that asks for a permit of a policy by name, for paths that are no endpoints."""
    type_answers: BoundedCache | None = None
    """Answers to the requests of HTTP types, where they are kept."""
    limited: bool = True
    """Rate limits count these requests; calls from inside the service are not counted (limits-7)."""

    drain_state: DrainState = field(default_factory=DrainState)
    """That of the worker."""

    replicas: Replicas | None = None
    """Of the main database, where some requests are read from them."""
    main: Database | None = None
    """The main one, where `database` is another."""

    @property
    def main_database(self) -> Database:
        return self.main or self.database

    @property
    def answer_codecs(self) -> Codecs:
        return self.safe_codecs or self.codecs

    def known(self, connection: str | None) -> bool:
        """Endpoints may run on it."""
        return connection is None or connection.casefold() in (*self.options.main_names, *self.others)

    def there(self, connection: str | None) -> Services:
        """What the factories of an endpoint on this connection use."""
        other = self.others.get((connection or "").casefold())
        return (
            self
            if other is None
            else replace(self, database=other[0], codecs=other[1], safe_codecs=other[2], main=self.database)
        )


Factory = Callable[[Endpoint, Services], Step | tuple[Step, ...] | None]
