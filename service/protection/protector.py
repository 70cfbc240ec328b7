"""Seals bytes with the key ring and opens them again, each purpose with keys of its own.

Sealed text is URL-safe base64 without padding: a version byte, the id of the key, then a random nonce with what
AES-GCM gives, or a random IV with what AES-CBC and HMAC give (encrypt, then authenticate). Keys are derived from the
secret by HKDF with the purpose in it, so what was sealed for one purpose opens for no other (reference 04, pitfall 28).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import os
import time
from collections.abc import Callable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from rowcall.core.key_ring import ALGORITHMS, Key, KeyRing

READ_WITHIN = 5.0
"""Seconds that a request with an unknown key waits for the ring to be read again."""

_VERSION = b"\x01"
_ID = 16
_NONCE = 12
_IV = 16
_DIGESTS = {"HMACSHA256": ("sha256", 32), "HMACSHA512": ("sha512", 64)}


class NoKeyError(Exception):
    """There is no key to seal with."""


class SealError(Exception):
    """The text was not sealed for this purpose by a key of the ring, or has been changed since."""


class UnknownKeyError(SealError):
    """It names a key that the ring does not hold. Another host may have made it since the ring was read."""


class Keys:
    """The key ring of a process. `ring` is replaced as a whole when the supervisor has read a new one.

    on_unknown: asks the supervisor to read it again.
    """

    def __init__(self, application: str) -> None:
        """application: the isolation boundary (`CustomApplicationName`)."""
        self._application = application
        self._ring = KeyRing()
        self._derived: dict[tuple[bytes, str], _Box] = {}
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
        key = self._ring.protecting(time.time())
        if key is None:
            raise NoKeyError("the key ring holds no active key")
        return key

    def box(self, key: Key, purpose: str) -> _Box:
        found = self._derived.get((key.id, purpose))
        if found is None:
            info = f"rowcall\0{self._application}\0{purpose}".encode()
            found = _CbcBox(key, info) if key.algorithm.endswith("_CBC") else _GcmBox(key, info)
            self._derived[key.id, purpose] = found
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


class _Box:
    """Keys of one purpose, derived from one key of the ring."""

    def seal(self, data: bytes, head: bytes) -> bytes:
        raise NotImplementedError

    def open(self, sealed: bytes, head: bytes) -> bytes:
        raise NotImplementedError


class _GcmBox(_Box):
    def __init__(self, key: Key, info: bytes) -> None:
        self._cipher = AESGCM(_derive(key, info, ALGORITHMS[key.algorithm]))

    def seal(self, data: bytes, head: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, data, head)

    def open(self, sealed: bytes, head: bytes) -> bytes:
        if len(sealed) < _NONCE:
            raise SealError("too short")
        try:
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], head)
        except (InvalidTag, ValueError):
            raise SealError("not sealed for this purpose, or changed since") from None


class _CbcBox(_Box):
    def __init__(self, key: Key, info: bytes) -> None:
        self._digest, self._size = _DIGESTS[key.validation]
        size = ALGORITHMS[key.algorithm]
        derived = _derive(key, info, size + self._size)
        self._key, self._mac_key = derived[:size], derived[size:]

    def seal(self, data: bytes, head: bytes) -> bytes:
        iv = os.urandom(_IV)
        padder = padding.PKCS7(128).padder()
        encryptor = Cipher(algorithms.AES(self._key), modes.CBC(iv)).encryptor()
        body = iv + encryptor.update(padder.update(data) + padder.finalize()) + encryptor.finalize()
        return body + self._mac(head + body)

    def open(self, sealed: bytes, head: bytes) -> bytes:
        body, mac = sealed[: -self._size], sealed[-self._size :]
        # The MAC is judged first: padding must not tell anything about what was changed.
        if len(body) < 2 * _IV or not hmac.compare_digest(mac, self._mac(head + body)):
            raise SealError("not sealed for this purpose, or changed since")
        decryptor = Cipher(algorithms.AES(self._key), modes.CBC(body[:_IV])).decryptor()
        unpadder = padding.PKCS7(128).unpadder()
        padded = decryptor.update(body[_IV:]) + decryptor.finalize()
        return unpadder.update(padded) + unpadder.finalize()

    def _mac(self, data: bytes) -> bytes:
        return hmac.digest(self._mac_key, data, self._digest)


def _derive(key: Key, info: bytes, size: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=size, salt=None, info=info).derive(key.secret)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    """Only what `_text` gives: another spelling of the same bytes is refused, so that every changed character shows."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise SealError("not base64") from None
    if _text(raw) != text:
        raise SealError("not in its one spelling")
    return raw
