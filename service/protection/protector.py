"""Seals bytes with the key ring and opens them again, each purpose with keys of its own.

Sealed text is URL-safe base64 without padding: a version byte, the id of the key, then a random nonce with what
AES-GCM gives, or a random IV with what AES-CBC and HMAC give (encrypt, then authenticate). Keys are derived from the
secret by HKDF with the purpose in it, so what was sealed for one purpose opens for no other (sign-in-13, protection-6).
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
_HEAD = len(_VERSION) + 16
"""Bytes ahead of what the cipher gives: version and key."""


class Keys:
    """The key ring of a process. `ring` is replaced as a whole when the supervisor has read a new one.

    on_unknown: asks the supervisor to read it again.
    """

    def __init__(self, application: str) -> None:
        """application: the isolation boundary (`CustomApplicationName`)."""
        self._application = application
        self._ring = KeyRing()
        self._ciphers: dict[tuple[bytes, str], KeyCipher] = {}
        """Of the keys of this ring, by what sealed texts begin with and the purpose."""
        self._sealing: dict[str, tuple[bytes, KeyCipher]] = {}
        """By purpose, what seals between `_since` and `_until`."""
        self._since = self._until = 0.0
        self._waiting: set[asyncio.Future[None]] = set()
        self.on_unknown: Callable[[], None] | None = None

    @property
    def ring(self) -> KeyRing:
        return self._ring

    @ring.setter
    def ring(self, ring: KeyRing) -> None:
        self._ring = ring
        self._ciphers.clear()
        self._since = self._until = 0.0
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

    def sealing(self, purpose: str) -> tuple[bytes, KeyCipher]:
        """What a sealed text begins with, and what seals the rest. Raises `NoKeyError`."""
        now = time.time()
        if not self._since <= now < self._until:
            self._sealing.clear()
            self._since, self._until = self._ring.settled(now)
        found = self._sealing.get(purpose)
        if found is None:
            key = self._ring.protecting(now)
            head = _VERSION + (self._stand_in(now) if key is None else key).id
            found = head, self.opening(head, purpose)
            if key is not None:
                self._sealing[purpose] = found
        return found

    def _stand_in(self, now: float) -> Key:
        """A clock is wrong, ours or that of whoever made the keys: the supervisor makes one that fits."""
        if self.on_unknown is not None:
            self.on_unknown()
        nearest = self._ring.nearest(now)
        if nearest is None:
            raise NoKeyError
        return nearest

    def opening(self, head: bytes, purpose: str) -> KeyCipher:
        """head: what the sealed text begins with. Raises `UnknownKeyError`."""
        found = self._ciphers.get((head, purpose))
        if found is None:
            key = self._ring.key(head[len(_VERSION) :])
            if key is None:
                raise UnknownKeyError("sealed with a key that is not in the ring")
            # cryptography takes 10 MB in each worker: for those that have something to seal.
            from rowcall.service.protection.ciphers import cipher_for

            info = f"rowcall\0{self._application}\0{purpose}".encode()
            found = self._ciphers[head, purpose] = cipher_for(key, info)
        return found


class Protector:
    """Seals and opens for one purpose."""

    def __init__(self, keys: Keys, purpose: str) -> None:
        self._keys = keys
        self._purpose = purpose

    def seal(self, data: bytes, context: bytes = b"") -> str:
        """context: authenticated and not part of the text; `open` needs the same. Raises `NoKeyError`."""
        head, cipher = self._keys.sealing(self._purpose)
        return _text(head + cipher.seal(data, head + context))

    def open(self, text: str, context: bytes = b"") -> bytes:
        """Raises `SealError`; `UnknownKeyError` where only the key is missing."""
        raw = _bytes(text)
        head = raw[:_HEAD]
        if len(head) < _HEAD or not head.startswith(_VERSION):
            raise SealError("not a sealed text")
        return self._keys.opening(head, self._purpose).open(raw[_HEAD:], head + context)


_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD = bytes.maketrans(b"-_+/=", b"+/!!!")
"""What is none of the URL-safe characters becomes something that base64 refuses."""
_LAST = (b"", b"", b"AQgw", b"AEIMQUYcgkosw048")
"""By the length modulo 4, the last characters whose bits all mean something. A single one left over is no base64."""


def _text(raw: bytes) -> str:
    """RFC 4648, section 5, without padding."""
    return binascii.b2a_base64(raw, newline=False).translate(_URL_SAFE, b"=").decode()


def _bytes(text: str) -> bytes:
    """Only what `_text` gives: another spelling of the same bytes is refused, so that every changed character shows."""
    try:
        standard = text.encode("ascii").translate(_STANDARD)
        left = len(standard) % 4
        if left and standard[-1] not in _LAST[left]:
            raise SealError("not in its one spelling")
        return binascii.a2b_base64(standard + b"=" * (-left % 4), strict_mode=True)
    except ValueError:
        raise SealError("not base64") from None
