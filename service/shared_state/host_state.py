"""The store of a host as one process sees it: opened when it is first needed, closed with the process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from rowcall.core.cache.entry import Entry
from rowcall.ext.response_cache.table import ResponseTable
from rowcall.service.shared_state.environment import Environment, shared_memory
from rowcall.service.shared_state.message_bus import WORKER_GONE, MessageBus

Kept = TypeVar("Kept")
FORGET_TAGS = "forget-tags"


class HostState:
    """To be used in a running event loop. folder: made by the supervisor (`service.shared_state.state_folder`)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environments: dict[str, Environment] = {}
        self._tables: dict[str, ResponseTable[Entry]] = {}
        self._kept: dict[str, object] = {}

    @property
    def name(self) -> str:
        """Of this start of the service, on this host."""
        return self._folder.name

    def environment(self, name: str, size: int) -> Environment:
        """The environment of a capability, the same for all processes. size: bytes, the same for all processes."""
        if name not in self._environments:
            self._environments[name] = Environment(self._folder / name, size)
        return self._environments[name]

    def answers(self, name: str, size: int) -> ResponseTable[Entry]:
        """The kept answers of a capability, as `environment`."""
        if name not in self._tables:
            with shared_memory(self._folder / name, size) as memory:
                self._tables[name] = ResponseTable(memory, os.getpid(), Entry)
        return self._tables[name]

    def once(self, name: str, make: Callable[[], Kept]) -> Kept:
        """What one process has one of, whichever edition it serves: made by the first who asks. It is closed with the
        store where it has a `close`."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]  # type: ignore[return-value]

    def agreed(self, name: str, mine: str) -> str:
        """What the first process of this host has said that was asked for its word about this."""
        path = self._folder / name
        word = self._folder / f"{name}.{os.getpid()}"
        word.write_text(mine, "utf-8")
        with contextlib.suppress(FileExistsError):
            os.link(word, path)
        word.unlink()
        return path.read_text("utf-8")

    @cached_property
    def message_bus(self) -> MessageBus:
        return MessageBus(self._folder)

    def tell_worker_gone(self, process: int) -> None:
        """Whatever it held is free, and whoever waits for it need not any longer. Where nobody listens, nothing is
        opened for it."""
        if (self._folder / "bus").is_dir():
            self.message_bus.publish(WORKER_GONE, str(process).encode())

    def announce_invalidation(self, tags: str) -> None:
        """All answers with these tags, separated by commas or blanks, are out of date."""
        if (self._folder / "bus").is_dir():
            self.message_bus.publish(FORGET_TAGS, tags.encode())

    def close(self) -> None:
        for stored in self._kept.values():
            close = getattr(stored, "close", None)
            if close is not None:
                close()
        self._kept.clear()
        for environment in self._environments.values():
            environment.close()
        self._environments.clear()
        self._tables.clear()
        if "bus" in self.__dict__:
            self.message_bus.close()
