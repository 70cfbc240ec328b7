"""The key ring in the supervisor: read, rotate, and publish every new state to all workers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rowcall.core.config import Settings
from rowcall.core.config.sections.data_protection import DataProtection, KeyCertificate, KeyTable
from rowcall.core.protection.key_ring import (
    DEFAULT_ALGORITHM,
    DEFAULT_VALIDATION,
    OVERLAP,
    SECRET,
    Key,
    KeyRing,
    element_text,
    read_element,
)
from rowcall.service.database.connector import Connector
from rowcall.service.protection.key_encryption import Certificate, KeyEncryption, PlaintextSecrets
from rowcall.service.protection.key_storage import Folder, Memory, Storage, Table
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

BETWEEN_READINGS = 0.25
"""Fewest seconds between two readings of the storage. Requests with unknown keys cannot cause more."""
FAILED_AGAIN_AFTER = 60.0
"""Seconds after which a failed reading is repeated."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """Lifetime and algorithms of the keys that are created for the ring."""

    lifetime: float
    """Seconds for which a key protects."""
    algorithm: str = DEFAULT_ALGORITHM
    validation: str = DEFAULT_VALIDATION


class KeyRotation:
    """Reads and rotates the key ring. Call `await rotation.start()`, then run `run` for the lifetime of the service."""

    def __init__(
        self, storage: Storage, encryption: KeyEncryption, renewal: Renewal, publish: Callable[[KeyRing], None]
    ) -> None:
        """publish: called with each new state of the ring."""
        self._storage = storage
        self._encryption = encryption
        self._renewal = renewal
        self._publish = publish
        self.ring = KeyRing()
        self._reading_requested = asyncio.Event()
        self._reported: set[str] = set()

    async def start(self) -> None:
        """Read the ring, and create a key if there is none or the next one is due.

        Raises:
            psycopg.Error: the database with the storage cannot be reached.
            OSError: the folder with the storage cannot be written to.
            StartupError: the storage cannot be used.
        """
        await self._read()
        await self._renew()

    async def check(self) -> None:
        """Read the ring without creating keys. Raises like `start`."""
        await self._read()

    async def run(self) -> None:
        """Read and rotate the key ring, forever: when its next key is due, when its folder has changed, and when a
        worker has met an unknown key. Errors are logged; the known keys stay in use."""
        longest, between_looks = 86_400.0, self._storage.between_looks
        while True:
            due = max(1.0, self.ring.next_read_time(time.time()) - time.time())
            await self._wait(min(longest, due), between_looks)
            self._reading_requested.clear()
            succeeded = await self._read_and_renew()
            # An unreadable storage reports a change at every check; without this, each would be logged.
            longest, between_looks = (
                (86_400.0, self._storage.between_looks) if succeeded else (FAILED_AGAIN_AFTER, math.inf)
            )
            await asyncio.sleep(BETWEEN_READINGS)

    async def _wait(self, seconds: float, between_looks: float) -> None:
        """Wait until the key ring has to be read: a reading is requested, the storage has changed, or `seconds` have
        passed. between_looks: seconds between two checks of the storage.
        """
        ends = time.monotonic() + seconds
        while not self._reading_requested.is_set() and (remaining := ends - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._reading_requested.wait(), min(remaining, between_looks))
            if await self._storage.has_changed():
                return

    async def _read_and_renew(self) -> bool:
        """Read and rotate the ring. An error is logged, and the known ring is published again, so that requests which
        wait for this reading go on. Return whether it succeeded."""
        start = time.monotonic()
        try:
            await self._read()
            await self._renew()
        except Exception as error:
            text = str(error).strip() or type(error).__name__
            log.error("the key ring cannot be read, the known keys stay in use: %s", text)
            # Requests that wait for this reading must not wait any longer.
            self._publish_ring(self.ring.with_keys((), start))
            return False
        return True

    def request_reading(self) -> None:
        """Let `run` read the ring soon, because another host may have created a key since the last reading."""
        self._reading_requested.set()

    async def _read(self) -> None:
        """Read the ring from the storage and publish it."""
        start = time.monotonic() if self._storage.shared else math.inf
        keys = [key for text in await self._storage.elements() if (key := self._decrypt_key(text)) is not None]
        self._report_lost({key.id for key in keys})
        self._publish_ring(self.ring.with_keys(keys, start))

    def _report_lost(self, stored_ids: set[bytes]) -> None:
        """Log keys of the ring that the storage no longer has. Otherwise, this would be noticed only at the next start,
        too late."""
        for key in self.ring.keys:
            text = f"{key.name} is missing in the key storage, or cannot be read there any more"
            if key.id not in stored_ids and text not in self._reported:
                self._reported.add(text)
                log.error("%s: values that it protects cannot be opened after a restart, nor by other hosts", text)

    def _decrypt_key(self, text: str) -> Key | None:
        """Return the key of a stored text; None if it cannot be used, which is logged once."""
        try:
            stored = read_element(text)
            return stored.with_secret(self._encryption.unwrap(stored.secret))
        except Exception as error:  # one invalid key must not affect the others
            if str(error) not in self._reported:
                self._reported.add(str(error))
                log.error("a stored key of the key ring cannot be used: %s", error)
            return None

    async def _renew(self) -> None:
        """Create the next key if it is due, under the lock of the storage."""
        if self.ring.successor_start(time.time()) is None:
            return
        async with self._storage.hold_lock():
            # Another host may have created the key while this one waited for the lock.
            await self._read()
            now = time.time()
            start = self.ring.successor_start(now)
            if start is not None:
                await self._create_key(now, start)

    async def _create_key(self, now: float, start: float) -> None:
        """Create and store a key that protects from `start` on. Times are in seconds since 1970. Raises as `start`
        does.
        """
        lifetime = self._renewal.lifetime
        key = Key(
            uuid.uuid4().bytes,
            now,
            # Active some time before it is needed, so that hosts with a slow clock have an active key too.
            start - min(OVERLAP, lifetime / 4),
            start + lifetime,
            os.urandom(SECRET),
            self._renewal.algorithm,
            self._renewal.validation,
        )
        await self._storage.store(key.name, element_text(key, self._encryption.wrap(key.secret)))
        log.info("%s was added to the key ring and protects from %s", key.name, _moment(start))
        self._publish_ring(self.ring.with_keys([key]))

    def _publish_ring(self, ring: KeyRing) -> None:
        """Set the ring of this process and publish it to the workers."""
        self.ring = ring
        self._publish(ring)


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def key_rotation_for(settings: Settings, connector: Connector, publish: Callable[[KeyRing], None]) -> KeyRotation:
    """Return the key rotation that the configuration selects. Raises `StartupError` or `ConfigError`. publish: called
    with each new state of the ring.
    """
    options = settings.read(DataProtection)
    renewal = Renewal(options.lifetime, options.algorithm, options.validation)
    if not options.enabled:
        return KeyRotation(Memory(), PlaintextSecrets(), renewal, publish)
    return KeyRotation(_storage(settings, options, connector), _encryption(settings, options), renewal, publish)


def _storage(settings: Settings, options: DataProtection, connector: Connector) -> Storage:
    match options.storage:
        case "FileSystem":
            if not options.folder:
                raise StartupError("DataProtection:FileSystemPath is needed with DataProtection:Storage=FileSystem")
            return Folder(Path(options.folder))
        case "Database":
            commands = settings.read(KeyTable)
            return Table(connector, commands.read, commands.store)
    return Memory()


def _encryption(settings: Settings, options: DataProtection) -> KeyEncryption:
    match options.key_encryption:
        case "Dpapi":
            raise StartupError("DataProtection:KeyEncryption=Dpapi exists on Windows only; use Certificate or None")
        case "Certificate":
            certificate = settings.read(KeyCertificate)
            if not certificate.path:
                raise StartupError("DataProtection:CertificatePath is needed with KeyEncryption=Certificate")
            return Certificate.load(Path(certificate.path), certificate.password)
    return PlaintextSecrets()
