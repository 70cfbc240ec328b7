"""The ciphers of the key ring: AES-GCM, or AES-CBC with HMAC (encrypt-then-MAC)."""

from __future__ import annotations

import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from rowcall.core.protection.key_ring import ALGORITHMS, Key
from rowcall.service.protection.errors import SealError

_NONCE = 12
_IV = 16
_DIGESTS = {"HMACSHA256": ("sha256", 32), "HMACSHA512": ("sha512", 64)}


class KeyCipher:
    """Encrypts and decrypts with keys of one purpose, derived from one key of the ring."""

    def seal(self, data: bytes, head: bytes) -> bytes:
        """Return the ciphertext with nonce and tag. head: authenticated, not part of the result."""
        raise NotImplementedError

    def open(self, sealed: bytes, head: bytes) -> bytes:
        """Return the plaintext. sealed, head: the result and the head of `seal`. Raises `SealError`."""
        raise NotImplementedError


class _GcmCipher(KeyCipher):
    """AES in Galois/Counter Mode."""

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


class _CbcCipher(KeyCipher):
    """AES in CBC mode, with an HMAC of head, initialization vector and ciphertext."""

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
        # The MAC is verified first, so that no padding error reveals what was changed (padding oracle).
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


def cipher_for(key: Key, info: bytes) -> KeyCipher:
    """Return the cipher of a key. info: its purpose, so that every purpose has its own derived keys."""
    return _CbcCipher(key, info) if key.algorithm.endswith("_CBC") else _GcmCipher(key, info)
