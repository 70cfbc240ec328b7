"""All replicas of the main database, and the choice of a replica for a request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

from rowcall.service.background import Background
from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.database.database import Database
from rowcall.service.database.replicas.options import ReplicaOptions
from rowcall.service.database.replicas.primary import Primary
from rowcall.service.database.replicas.replica import Replica


class Replicas:
    """The replicas of one worker. Must be created in the running event loop."""

    def __init__(self, options: ReplicaOptions, primary: ConnectionTarget) -> None:
        self.options = options
        self.primary = Primary(Connector(primary))
        self._replicas = [Replica(server) for server in options.servers]
        self._turn = 0
        self._background = Background()
        self._check_requested = asyncio.Event()

    @property
    def databases(self) -> Iterator[Database]:
        return (replica.database for replica in self._replicas)

    def start(self) -> None:
        """Begin to check the primary and each replica in the background."""
        self._background.keep("the watch over the primary", self._watch_primary)
        for replica in self._replicas:
            self._background.keep(f"the watch over replica {replica.name}", partial(self._watch, replica))

    async def _watch_primary(self) -> None:
        while True:
            await self.primary.sample()
            await asyncio.sleep(self.options.check)

    async def _watch(self, replica: Replica) -> None:
        """Check the replica again and again, `options.check` seconds after the last check or at once after
        `check_now`."""
        while True:
            await replica.check(self.primary)
            self._check_requested.clear()
            try:
                async with asyncio.timeout(self.options.check):
                    await self._check_requested.wait()
            except TimeoutError:
                continue

    def check_now(self) -> None:
        """Check all replicas now instead of after the interval, because one has failed."""
        self._check_requested.set()

    def choose(self, lag: float | None, position: int) -> Replica | None:
        """Return a replica with at most `lag` seconds of lag that has reached the WAL position, in rotation; None:
        there is none. lag: None: any lag.
        """
        usable = [item for item in self.usable_replicas(lag) if item.position >= position]
        if not usable:
            return None
        self._turn += 1
        return usable[self._turn % len(usable)]

    def usable_replicas(self, lag: float | None) -> list[Replica]:
        """Return the available replicas whose lag is at most `lag` seconds; None: any lag."""
        return [item for item in self._replicas if item.up and (lag is None or item.lag() <= lag)]

    async def wait_for(self, lag: float | None, position: int) -> Replica | None:
        """Return the most advanced replica once it has reached the WAL position; None: it has not, within the
        configured wait, or no replica has so little lag. lag: as for `usable_replicas`.
        """
        usable = self.usable_replicas(lag)
        if not usable:
            return None
        furthest = max(usable, key=lambda item: item.position)
        return furthest if await furthest.wait_until_replayed(position, self.options.wait) and furthest.up else None

    def close(self) -> None:
        self._background.cancel()
        self.primary.close()
        for replica in self._replicas:
            replica.close()
