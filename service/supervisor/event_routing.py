"""Routes events between the workers of this host, the notification channels of PostgreSQL, and other hosts."""

from __future__ import annotations

import logging

from rowcall.service.background import Background
from rowcall.service.database.connector import Connector
from rowcall.service.events.activity import HubActivity
from rowcall.service.events.channels import ChannelListener
from rowcall.service.events.cross_host.transport_choice import transport_for
from rowcall.service.events.hub import EventHub
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.supervisor.channel import (
    DeliveredEvents,
    EventMessage,
    PublishedEvents,
    ReplayedEvents,
    UnpublishedNotice,
)
from rowcall.service.supervisor.processes.worker_process import WorkerProcess

log = logging.getLogger("rowcall")


class EventRouting:
    """The events of this host."""

    def __init__(self, options: WorkerOptions, connector: Connector) -> None:
        self._options = options
        self._connector = connector
        self._hub = EventHub(options.events)
        self._channels = ChannelListener(connector, self._hub.publish_notification)
        self._between_hosts = Background()
        """Runs until the last worker has ended: requests that finish meanwhile publish events too."""

    @property
    def activity(self) -> HubActivity:
        """Counts of the events of this host, for operators."""
        return self._hub.activity

    @property
    def channels(self) -> tuple[frozenset[str], frozenset[str]]:
        """The notification channels to listen to, and those of them for which the server has confirmed LISTEN."""
        return self._channels.watched, self._channels.active

    async def connect_hosts(self) -> None:
        """Connect to the other hosts, if configured. Raises StartupError for an invalid configuration."""
        transport = transport_for(self._options.events, self._connector, pooler=self._options.target.pooler)
        if transport is not None:
            await self._hub.connect(transport, self._between_hosts)

    def hear(self, worker: WorkerProcess, message: EventMessage) -> None:
        """Handle a message of a worker about events: published ones, an unpublished notice, or whether the worker has
        streams.
        """
        if isinstance(message, PublishedEvents):
            self._hub.publish(message.packed)
        elif isinstance(message, UnpublishedNotice):
            self._hub.unpublished_notices(message.path, message.severity)
        elif message.subscribed:
            channel = worker.channel
            so_far = self._hub.add_worker(worker, lambda packed: channel.send(DeliveredEvents(packed)))
            channel.send(ReplayedEvents(so_far))
        else:
            self._hub.remove_worker(worker)

    async def listen_also(self, channels: frozenset[str]) -> None:
        """Listen to these channels too, besides those of the snapshot that is still active. Behind a transaction
        pooler, this is only logged, as LISTEN is not possible there. Return when it listens, or when that has failed
        or takes too long, which is logged and tried again.
        """
        if channels and self._options.target.pooler:
            log.warning(
                "behind a transaction pooler LISTEN is not possible: streams of %s stay empty", ", ".join(channels)
            )
        else:
            await self._channels.watch(self._channels.watched | channels)

    async def listen_only(self, channels: frozenset[str]) -> None:
        """Stop listening to channels that are not among these."""
        await self._channels.watch(self._channels.watched & channels)

    def close_channels(self) -> None:
        """Stop listening to all notification channels."""
        self._channels.close()

    async def finish(self) -> None:
        """Send the remaining events to other hosts. The workers have ended."""
        await self._hub.finish()
        self._between_hosts.cancel()
