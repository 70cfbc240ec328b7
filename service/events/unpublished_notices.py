"""Detection of notices from endpoints that do not publish, while others do: an annotation may be missing
(events-14).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.database.pools.pool import NoticeHandler


class UnpublishedNotices:
    """Notice handler that finds missing annotations: if any endpoint has events, it reports notices of the event level
    from endpoints that do not publish events. Every notice is also passed to the handler `behind`.

    severity: the level of events. behind: None: there is no other handler. report: attribute; called with the path of
    the endpoint and the severity.
    """

    def __init__(self, severity: str, behind: NoticeHandler | None) -> None:
        self._severity = severity
        self._behind = behind
        self._silent: dict[str, str] | None = None
        """Path of each endpoint that does not publish, by name, with which the labels of its calls begin. None: no
        endpoint has events, so nothing is reported.
        """
        self.report: Callable[[str, str], None] = lambda path, severity: None

    def watch(self, endpoints: Iterable[Endpoint]) -> None:
        """Use these endpoints from now on: those of the schema snapshot that is served."""
        endpoints = tuple(endpoints)
        published = any(endpoint.options.events is not None for endpoint in endpoints)
        self._silent = {item.name: item.path for item in endpoints if not _publishes(item)} if published else None

    def __call__(
        self, label: str | None, severity: str, sqlstate: str, message: str, context: str | None, owner: object = None
    ) -> None:
        """Handle a notice. label: of the call that has raised it; None: no call has. context, owner: for the other
        handler.
        """
        if self._behind is not None:
            self._behind(label, severity, sqlstate, message, context, owner)
        if self._silent is None or label is None or severity != self._severity:
            return
        name = " ".join(label.split(" ", 2)[:2])
        path = self._silent.get(name)
        if path is not None:
            self.report(path, severity)


def _publishes(endpoint: Endpoint) -> bool:
    events = endpoint.options.events
    return events is not None and events.publish
