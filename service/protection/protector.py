"""Seals bytes with the key ring and opens them again, each purpose with keys of its own.

Sealed text is URL-safe base64 without padding: a version byte, the id of the key, then a random nonce with what
AES-GCM gives, or a random IV with what AES-CBC and HMAC give (encrypt, then authenticate). Keys are derived from the
secret by HKDF with the purpose in it, so what was sealed for one purpose opens for no other (reference 04, pitfall 28).
"""

from __future__ import annotations

import asyncio
import binascii
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rowcall.core.protection.key_ring import Key, KeyRing
from rowcall.service.protection.errors import NoKeyError, SealError, UnknownKeyError

if TYPE_CHECKING:
    from rowcall.service.protection.ciphers import KeyCipher

READ_WITHIN = 5.0
"""Seconds that a request with an unknown key waits for the ring to be read again."""

_VERSION = b"\x01"
_ID = 16


class Keys:
    """The key ring of a process. `ring` is replaced as a whole when the supervisor has read a new one.

    on_unknown: asks the supervisor to read it again.
    """

    def __init__(self, application: str) -> None:
        """application: the isolation boundary (`CustomApplicationName`)."""
        self._application = application
        self._ring = KeyRing()
        self._derived: dict[tuple[bytes, str], KeyCipher] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self.on_unknown: Callable[[], None] | None = None

    @property
    def ring(self) -> KeyRing:
        return self._ring

    @ring.setter
    def ring(self, ring: KeyRing) -> None:
        self._ring = ring
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def read_again(self) -> None:
        """Waits for a ring that was read after this was called, a few seconds at most."""
        asked = time.monotonic()
        deadline = asked + READ_WITHIN
        if self.on_unknown is None or self._ring.read_at >= asked:
            return
        self.on_unknown()
        while self._ring.read_at < asked and (left := deadline - time.monotonic()) > 0:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            await asyncio.wait({future}, timeout=left)
            self._waiting.discard(future)

    def protecting(self) -> Key:
        now = time.time()
        key = self._ring.protecting(now)
        if key is not None:
            return key
        # A clock is wrong, ours or that of whoever made the keys: the supervisor makes one that fits.
        if self.on_unknown is not None:
            self.on_unknown()
        nearest = self._ring.nearest(now)
        if nearest is None:
            raise NoKeyError
        return nearest

    def box(self, key: Key, purpose: str) -> KeyCipher:
        found = self._derived.get((key.id, purpose))
        if found is None:
            # cryptography takes 10 MB in each worker: for those that have something to seal.
            from rowcall.service.protection.ciphers import cipher_for

            info = f"rowcall\0{self._application}\0{purpose}".encode()
            found = self._derived[key.id, purpose] = cipher_for(key, info)
        return found


class Protector:
    """Seals and opens for one purpose."""

    def __init__(self, keys: Keys, purpose: str) -> None:
        self._keys = keys
        self._purpose = purpose

    def seal(self, data: bytes) -> str:
        """Raises `NoKeyError`."""
        key = self._keys.protecting()
        head = _VERSION + key.id
        return _text(head + self._keys.box(key, self._purpose).seal(data, head))

    def open(self, text: str) -> bytes:
        """Raises `SealError`; `UnknownKeyError` where only the key is missing."""
        raw = _bytes(text)
        head = raw[: 1 + _ID]
        if len(head) < 1 + _ID or head[:1] != _VERSION:
            raise SealError("not a sealed text")
        key = self._keys.ring.key(head[1:])
        if key is None:
            raise UnknownKeyError("sealed with a key that is not in the ring")
        return self._keys.box(key, self._purpose).open(raw[1 + _ID :], head)


_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD = bytes.maketrans(b"-_", b"+/")


def _text(raw: bytes) -> str:
    """RFC 4648, section 5, without padding."""
    return binascii.b2a_base64(raw, newline=False).translate(_URL_SAFE, b"=").decode()


def _bytes(text: str) -> bytes:
    """Only what `_text` gives: another spelling of the same bytes is refused, so that every changed character shows."""
    try:
        standard = text.encode("ascii").translate(_STANDARD)
        raw = binascii.a2b_base64(standard + b"=" * (-len(text) % 4))
    except ValueError:
        raise SealError("not base64") from None
    if _text(raw) != text:
        raise SealError("not in its one spelling")
    return raw
