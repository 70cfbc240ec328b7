"""Seal bytes with the key ring and open them again, with separate keys for each purpose.

Sealed text is URL-safe base64 without padding: a version byte, the id of the key, then a random nonce with the result
of AES-GCM, or a random IV with the result of AES-CBC and HMAC (encrypt-then-MAC). Keys are derived from the secret by
HKDF with the purpose, so a text that was sealed for one purpose cannot be opened for another (sign-in-13,
protection-6).
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
"""Seconds for which a request with an unknown key waits for the ring to be read again."""

_VERSION = b"\x01"
_HEAD = len(_VERSION) + 16
"""Bytes in front of the ciphertext: version and key id."""


class Keys:
    """The key ring of a process. `ring` is replaced as a whole when the supervisor has read a new one, which wakes the
    requests in `read_again`.

    on_unknown: attribute; function that requests another reading from the supervisor; None: no reading can be
    requested.
    """

    def __init__(self, application: str) -> None:
        """application: name that separates the encryption of services (`CustomApplicationName`): values of services
        with other names cannot be decrypted."""
        self._application = application
        self._ring = KeyRing()
        self._ciphers: dict[tuple[bytes, str], KeyCipher] = {}
        """Ciphers of the keys of this ring, by the head of sealed texts and the purpose."""
        self._sealing: dict[str, tuple[bytes, KeyCipher]] = {}
        """By purpose: head and cipher for sealing between `_since` and `_until`."""
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
        """Request another reading of the ring, and wait for it, at most `READ_WITHIN` seconds. Returns at once if no
        reading can be requested. Afterwards, the caller tries its key again."""
        requested_at = time.monotonic()
        deadline = requested_at + READ_WITHIN
        if self.on_unknown is None or self._ring.read_at >= requested_at:
            return
        self.on_unknown()
        while self._ring.read_at < requested_at and (remaining := deadline - time.monotonic()) > 0:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await asyncio.wait({future}, timeout=remaining)
            finally:
                self._waiting.discard(future)

    def encryption_cipher(self, purpose: str) -> tuple[bytes, KeyCipher]:
        """Return the head of encrypted texts (version and key id) and the cipher with which to encrypt them. If no key
        is active, as with a wrong clock, the key whose time is nearest is used, and another reading of the ring is
        requested. Raises `NoKeyError` if the ring is empty."""
        now = time.time()
        if not self._since <= now < self._until:
            self._sealing.clear()
            self._since, self._until = self._ring.stable_interval(now)
        entry = self._sealing.get(purpose)
        if entry is None:
            key = self._ring.latest_active_key(now)
            head = _VERSION + (self._stand_in(now) if key is None else key).id
            entry = head, self.cipher_of(head, purpose)
            if key is not None:
                self._sealing[purpose] = entry
        return entry

    def _stand_in(self, now: float) -> Key:
        """Return the key whose time is nearest to `now`, and request another reading of the ring from the supervisor.
        Called if no key is active. now: in seconds since 1970.

        This happens if a clock is wrong: that of this host, or of the host that created the keys. Raises `NoKeyError`
        if the ring is empty.
        """
        if self.on_unknown is not None:
            self.on_unknown()
        key = self._ring.protecting_key(now)
        if key is None:
            raise NoKeyError
        return key

    def cipher_of(self, head: bytes, purpose: str) -> KeyCipher:
        """Return the cipher that decrypts a sealed text. head: its version and the id of its key. Raises
        `UnknownKeyError` if the ring does not have that key.
        """
        cipher = self._ciphers.get((head, purpose))
        if cipher is None:
            key = self._ring.key(head[len(_VERSION) :])
            if key is None:
                raise UnknownKeyError("sealed with a key that is not in the ring")
            # cryptography takes 10 MB in each worker, so it is imported on first use.
            from rowcall.service.protection.ciphers import cipher_for

            info = f"rowcall\0{self._application}\0{purpose}".encode()
            cipher = self._ciphers[head, purpose] = cipher_for(key, info)
        return cipher


class Protector:
    """Seals and opens texts of one purpose."""

    def __init__(self, keys: Keys, purpose: str) -> None:
        self._keys = keys
        self._purpose = purpose

    def seal(self, data: bytes, context: bytes = b"") -> str:
        """Return the sealed text. context: authenticated, but not part of the text; `open` needs the same context.
        Raises `NoKeyError`.
        """
        head, cipher = self._keys.encryption_cipher(self._purpose)
        return _text(head + cipher.seal(data, head + context))

    def open(self, text: str, context: bytes = b"") -> bytes:
        """Return the plaintext. Raises `SealError`; its subclass `UnknownKeyError` if only the key is missing."""
        raw = _bytes(text)
        head = raw[:_HEAD]
        if len(head) < _HEAD or not head.startswith(_VERSION):
            raise SealError("not a sealed text")
        return self._keys.cipher_of(head, self._purpose).open(raw[_HEAD:], head + context)


_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD = bytes.maketrans(b"-_+/=", b"+/!!!")
"""Maps characters that are not URL-safe base64 to one that base64 refuses."""
_LAST = (b"", b"", b"AQgw", b"AEIMQUYcgkosw048")
"""By the length modulo 4: the last characters whose unused bits are zero. A length of 1 modulo 4 is no base64."""


def _text(raw: bytes) -> str:
    """Encode as in RFC 4648, section 5, without padding."""
    return binascii.b2a_base64(raw, newline=False).translate(_URL_SAFE, b"=").decode()


def _bytes(text: str) -> bytes:
    """Decode the encoding of `_text`. Raises `SealError`.

    Other encodings of the same bytes are refused, so that every changed character is detected.
    """
    try:
        standard = text.encode("ascii").translate(_STANDARD)
        remainder = len(standard) % 4
        if remainder and standard[-1] not in _LAST[remainder]:
            raise SealError("not in the canonical encoding")
        return binascii.a2b_base64(standard + b"=" * (-remainder % 4), strict_mode=True)
    except ValueError:
        raise SealError("not base64") from None
