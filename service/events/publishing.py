"""Notice listeners for endpoints, and for database roles of PostgREST's interface, that publish events (events-4 to
events-6, events-17).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache, partial

from rowcall.core.endpoint.capabilities import Audience, NoticeLevel, Tenant
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.events.event import Event, HintError, Publication
from rowcall.core.events.options import EventOptions
from rowcall.core.events.stream_path import level_of
from rowcall.service.database.call import Hear, HearAs, NoticeListener
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.request_context.surroundings import tenant_of

log = logging.getLogger("rowcall.events")

Publish = Callable[[Event], None]

MOST_ROLES = 512
"""Database roles of PostgREST's interface whose publishers are cached."""
_BY_THE_DRIVER = "25P01"
"""Warning about a setting outside of a transaction block, which statements of the driver itself provoke."""


def hear_notices(endpoint: Endpoint, options: EventOptions, publish: Publish) -> Hear | None:
    """Return the function that makes the notice listener of a request; None: the endpoint publishes nothing. publish:
    called with each event.
    """
    events = endpoint.options.events
    if events is None or not events.publish:
        return None
    access = endpoint.access
    publication = Publication(events.scope, events.names, not access.anonymous, access.required)
    level = level_of(events, options.level)
    publisher = _Publisher(endpoint.name, level, publication, endpoint.options.tenant, options, publish)
    waits = options.after_commit if events.after_commit is None else events.after_commit
    return partial(_AfterCommit if waits else _AtOnce, publisher)


def hear_notices_of_roles(level: NoticeLevel, tenant: Tenant | None, options: EventOptions, publish: Publish) -> HearAs:
    """Return the function that makes the notice listener of a request of PostgREST's interface.

    Its events are for signed-in users with a role of the same name as the database role of the request, unless a HINT
    has another scope. level: of the notices that are published. tenant: where the tenant of each request comes from;
    its events are for the streams of that tenant, and a request without a tenant publishes none. None: events are for
    the streams of all tenants.
    """
    listener = _AfterCommit if options.after_commit else _AtOnce

    @lru_cache(maxsize=MOST_ROLES)
    def publisher_of(role: str) -> _Publisher:
        publication = Publication(Audience.MATCHING, (), closed=True, roles=(role,))
        return _Publisher(f"PostgREST's interface as {role}", level, publication, tenant, options, publish)

    def hear(context: RequestContext, role: str) -> NoticeListener:
        return listener(publisher_of(role), context)

    return hear


class _Publisher:
    """Makes the events of one endpoint or role, for all of its requests. name: for the log. tenant: where the tenant of
    a request comes from; None: events are for the streams of all tenants."""

    def __init__(
        self,
        name: str,
        level: NoticeLevel,
        publication: Publication,
        tenant: Tenant | None,
        options: EventOptions,
        publish: Publish,
    ) -> None:
        self.name = name
        self.level = level.value
        self.publish = publish
        self._publication = publication
        self._header = options.execution_header
        self._tenant = tenant

    def execution_of(self, context: RequestContext) -> str:
        """Return the execution id in the headers of a request; empty: it has none."""
        return context.scope.headers.get(self._header) or ""

    def tenant_of(self, context: RequestContext) -> str | None:
        """Return the tenant of a request. Empty: its events are for the streams of all tenants. None: the request has
        no tenant, though it needs one, so it publishes nothing."""
        return "" if self._tenant is None else tenant_of(self._tenant, context)

    def event(self, message: str, hint: str | None, execution: str) -> Event:
        """Return the event for a notice. hint: its HINT, which can say who may see the event; if it has a mistake, this
        is logged, and the default scope applies instead. execution: from `execution_of`.
        """
        try:
            return self._publication.event(message, hint, execution)
        except HintError as error:
            log.error(
                "%s: the HINT of a notice does not say who may see it, so the default scope does: %s",
                *(self.name, error),
            )
            return self._publication.event(message, None, execution)


class _AtOnce:
    """The notice listener of a request that publishes each notice of the event level when it arrives, before the
    transaction has ended, as reports of progress cannot wait.
    """

    __slots__ = ("_context", "_execution", "_publisher", "_tenant")

    def __init__(self, publisher: _Publisher, context: RequestContext) -> None:
        self._publisher = publisher
        self._context = context
        self._execution: str | None = None
        self._tenant: str | None = None

    def hear(self, severity: str, sqlstate: str, message: str, hint: str | None) -> None:
        publisher = self._publisher
        if severity == publisher.level and sqlstate != _BY_THE_DRIVER:
            event = self._event(message, hint)
            if event is not None:
                self._publish(event)

    def send(self, message: str) -> None:
        """Publish a message at once, as a notice without HINT."""
        event = self._event(message, None)
        if event is not None:
            self._publisher.publish(event)

    def _event(self, message: str, hint: str | None) -> Event | None:
        """Return the event for a notice, with the tenant of the request; None: the tenant is unknown, as in a job
        enqueued in SQL, so nothing is published.
        """
        if self._execution is None:
            self._execution = self._publisher.execution_of(self._context)
            self._tenant = self._publisher.tenant_of(self._context)
        if self._tenant is None:
            return None
        event = self._publisher.event(message, hint, self._execution)
        return event._replace(tenant=self._tenant) if self._tenant else event

    def _publish(self, event: Event) -> None:
        self._publisher.publish(event)

    def end(self, committed: bool) -> None:
        """Do nothing: the notices are published already."""


class _AfterCommit(_AtOnce):
    """The notice listener of a request that publishes the notices of a transaction after it has committed. If the
    transaction was rolled back, or its outcome is unknown, nothing is published."""

    __slots__ = ("_events",)

    def __init__(self, publisher: _Publisher, context: RequestContext) -> None:
        super().__init__(publisher, context)
        self._events: list[Event] = []

    def _publish(self, event: Event) -> None:
        self._events.append(event)

    def end(self, committed: bool) -> None:
        events, self._events = self._events, []
        if committed:
            for event in events:
                self._publisher.publish(event)
