"""The shared state of a host as one process uses it: opened at first use, closed with the process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rowcall.core.cache.entry import Entry
from rowcall.ext.response_cache.table import ResponseTable
from rowcall.service.shared_state.environment import Environment, shared_memory
from rowcall.service.shared_state.message_bus import WORKER_GONE, MessageBus

SharedObject = TypeVar("SharedObject")
INVALIDATE_TAGS = "forget-tags"
"""Topic of the message bus for tags whose cached responses are invalid."""
INVALIDATE_TAGGED = "forget-tagged"
"""Topic of the message bus for the loss of such tags, after which all responses with tags are invalid."""


class HostState:
    """Access to the shared state. Use it in a running event loop.

    folder: made by the supervisor (`service.shared_state.state_folder`).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environments: dict[str, Environment] = {}
        self._tables: dict[str, ResponseTable[Entry]] = {}
        self._objects: dict[str, object] = {}
        self._message_bus: MessageBus | None = None

    @property
    def name(self) -> str:
        """Name of the running service, unique on this host: that of its folder, which each start creates anew."""
        return self._folder.name

    def environment(self, name: str, size: int) -> Environment:
        """Return the environment of a capability, which all processes of the host share.

        name: unique; it is also the name of the folder. size: requested bytes of data, the same in all processes; if
        there is not enough memory, the environment has a smaller `size`. The first call raises `OSError` if there is
        almost none.
        """
        if name not in self._environments:
            self._environments[name] = Environment(self._folder / name, size)
        return self._environments[name]

    def cached_responses(self, name: str, size: int) -> ResponseTable[Entry]:
        """Return the table of cached responses of a capability. Name and size as for `environment`."""
        if name not in self._tables:
            with shared_memory(self._folder / name, size) as memory:
                self._tables[name] = ResponseTable(memory, os.getpid(), Entry)
        return self._tables[name]

    def get_or_create(self, name: str, make: Callable[[], SharedObject]) -> SharedObject:
        """Return the object of this name, which exists once in a process for all schema snapshots. At the first call,
        it is created by `make`.

        If it has a `close` method, it is closed together with the shared state.
        """
        if name not in self._objects:
            self._objects[name] = make()
        return self._objects[name]  # type: ignore[return-value]  # each name has one type

    def first_proposal(self, name: str, mine: str) -> str:
        """Return the value that the first process of this host has proposed under this name. mine: the proposal of this
        process.
        """
        path = self._folder / name
        proposal = self._folder / f"{name}.{os.getpid()}"
        proposal.write_text(mine, "utf-8")
        with contextlib.suppress(FileExistsError):
            os.link(proposal, path)
        proposal.unlink()
        return path.read_text("utf-8")

    @property
    def message_bus(self) -> MessageBus:
        """The message bus of this process, opened at first use."""
        if self._message_bus is None:
            self._message_bus = MessageBus(self._folder)
        return self._message_bus

    def announce_worker_exit(self, process: int) -> None:
        """Publish the exit of a worker, so that other workers no longer wait for the leases that it held. Does nothing
        if no process of the host has opened the message bus. process: its process id.
        """
        if (self._folder / "bus").is_dir():
            self.message_bus.publish(WORKER_GONE, str(process).encode())

    def announce_invalidation(self, tags: str) -> None:
        """Publish that all responses with these tags are invalid. tags: separated by commas or blanks. Does nothing if
        no process of the host has opened the message bus.
        """
        if (self._folder / "bus").is_dir():
            self.message_bus.publish(INVALIDATE_TAGS, tags.encode())

    def announce_lost_invalidations(self) -> None:
        """Publish that invalidations of tags may have been lost. Does nothing if no process of the host has opened the
        message bus.
        """
        if (self._folder / "bus").is_dir():
            self.message_bus.publish(INVALIDATE_TAGGED, b"")

    def close(self) -> None:
        for shared_object in self._objects.values():
            close = getattr(shared_object, "close", None)
            if close is not None:
                close()
        self._objects.clear()
        for environment in self._environments.values():
            environment.close()
        self._environments.clear()
        self._tables.clear()
        if self._message_bus is not None:
            self._message_bus.close()
            self._message_bus = None
