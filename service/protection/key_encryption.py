"""Storage forms of keys: plain, or encrypted to the certificate of a .pfx file (`DataProtection:KeyEncryption`)."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import pkcs12

from rowcall.core.protection.key_ring import KeyElementError, open_plain, plain_secret
from rowcall.service.startup_error import StartupError

_NONCE = 12
_OAEP = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)


class KeyEncryption(Protocol):
    """The interface of the forms in which the secret of a key is stored: plain or encrypted."""

    def wrap(self, secret: bytes) -> dict[str, str]:
        """Return the members of the JSON object in which a secret is stored. The member `kind` says whether it is plain
        or encrypted."""

    def unwrap(self, stored: Mapping[str, str]) -> bytes:
        """Return the secret of a stored form, as `wrap` returns it. Raises `KeyElementError` if it cannot be read."""


class PlaintextSecrets:
    """Secrets are stored plainly."""

    def wrap(self, secret: bytes) -> dict[str, str]:
        return plain_secret(secret)

    def unwrap(self, stored: Mapping[str, str]) -> bytes:
        if stored.get("kind") != "plain":
            raise KeyElementError("its secret is encrypted to a certificate")
        return open_plain(stored)


class Certificate:
    """Secrets are stored encrypted: by a random AES key, which is itself encrypted to the certificate (RSA-OAEP with
    SHA-256).

    Keys that were stored without encryption, before a certificate was configured, can still be read.
    """

    def __init__(self, private: RSAPrivateKey | None, public: RSAPublicKey) -> None:
        self._private = private
        self._public = public

    @classmethod
    def load(cls, path: Path, password: str | None) -> Certificate:
        """Load the certificate of a .pfx file. password: of the file; None: it has none. Raises `StartupError`."""
        secret = None if password is None else password.encode()
        try:
            bundle = pkcs12.load_pkcs12(path.read_bytes(), secret)
        except (OSError, ValueError) as error:
            raise StartupError(f"DataProtection:CertificatePath {path} cannot be read: {error}") from None
        if bundle.cert is None or not isinstance(public := bundle.cert.certificate.public_key(), RSAPublicKey):
            raise StartupError(f"DataProtection:CertificatePath {path} holds no certificate with an RSA key")
        return cls(bundle.key if isinstance(bundle.key, RSAPrivateKey) else None, public)

    def wrap(self, secret: bytes) -> dict[str, str]:
        key, nonce = AESGCM.generate_key(256), os.urandom(_NONCE)
        return {
            "kind": "certificate",
            "key": base64.b64encode(self._public.encrypt(key, _OAEP)).decode(),
            "value": base64.b64encode(nonce + AESGCM(key).encrypt(nonce, secret, None)).decode(),
        }

    def unwrap(self, stored: Mapping[str, str]) -> bytes:
        if stored.get("kind") == "plain":
            return open_plain(stored)
        if self._private is None:
            raise KeyElementError("its secret is encrypted, and the certificate comes without its private key")
        try:
            key = self._private.decrypt(base64.b64decode(stored["key"]), _OAEP)
            value = base64.b64decode(stored["value"])
            return AESGCM(key).decrypt(value[:_NONCE], value[_NONCE:], None)
        except (KeyError, binascii.Error, ValueError, InvalidTag):
            raise KeyElementError("its secret is not encrypted to this certificate") from None
