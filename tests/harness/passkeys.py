"""An authenticator in software: it creates keys and signs like a security key, with errors if a test sets them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import dataclass, field, replace
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512

PRESENT, VERIFIED, ELIGIBLE, BACKED_UP, ATTESTED, EXTENDED = 0x01, 0x04, 0x08, 0x10, 0x40, 0x80
_CURVES = {-7: (ec.SECP256R1, 1, SHA256), -35: (ec.SECP384R1, 2, SHA384), -36: (ec.SECP521R1, 3, SHA512)}


def base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Authenticator:
    """A credential. Changes with `but` apply to everything that the returned authenticator does."""

    origin: str
    relying_party: str
    algorithm: int = -7
    flags: int = PRESENT | VERIFIED
    count: int = 0
    cross_origin: bool = False
    kind: str | None = None
    """Type in the client data; None: the correct one."""
    cose: dict[int, Any] | None = None
    """Public key instead of the correct one."""
    id: bytes = field(default_factory=lambda: os.urandom(32))
    handle: str | None = None
    extensions: dict[str, Any] | None = None
    """Results of extensions, in logins."""

    def __post_init__(self) -> None:
        if self.algorithm in _CURVES:
            self.key: Any = ec.generate_private_key(_CURVES[self.algorithm][0]())
        else:
            self.key = rsa.generate_private_key(65537, 2048)

    def but(self, **changes: Any) -> Authenticator:
        """Return the same credential with changed fields."""
        changed = replace(self, **changes)
        changed.key = self.key
        return changed

    def made(self, options: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """Return the request that ends a registration. The argument is the response of the options endpoint."""
        self.handle = options["user"]["id"]
        attested = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + cbor2.dumps(self.cose or self.public())
        data = self._data(self.flags | ATTESTED) + attested
        return {
            "challengeId": options["challengeId"],
            "credentialId": base64url(self.id),
            "attestationObject": base64url(cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})),
            "clientDataJSON": base64url(self._client_data("webauthn.create", options["challenge"])),
            "transports": ["internal"],
            "userContext": options["userContext"],
            **changes,
        }

    def signed(self, options: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """Return the request that ends a login."""
        data = self._data(self.flags)
        if self.extensions is not None:
            data = self._data(self.flags | EXTENDED) + cbor2.dumps(self.extensions)
        client_data = self._client_data("webauthn.get", options["challenge"])
        signature = self._sign(data + hashlib.sha256(client_data).digest())
        return {
            "challengeId": options["challengeId"],
            "credentialId": base64url(self.id),
            "authenticatorData": base64url(data),
            "clientDataJSON": base64url(client_data),
            "signature": base64url(signature),
            "userHandle": self.handle,
            **changes,
        }

    def public(self) -> dict[int, Any]:
        """Return the public key in COSE."""
        numbers = self.key.public_key().public_numbers()
        if self.algorithm not in _CURVES:
            return {1: 3, 3: self.algorithm, -1: numbers.n.to_bytes(256, "big"), -2: b"\1\0\1"}
        curve, number, _ = _CURVES[self.algorithm]
        size = (curve().key_size + 7) // 8
        point = {-2: numbers.x.to_bytes(size, "big"), -3: numbers.y.to_bytes(size, "big")}
        return {1: 2, 3: self.algorithm, -1: number, **point}

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(self.relying_party.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big")

    def _client_data(self, kind: str, challenge: str) -> bytes:
        members = {"type": self.kind or kind, "challenge": challenge, "origin": self.origin}
        return json.dumps({**members, "crossOrigin": self.cross_origin}).encode()

    def _sign(self, data: bytes) -> bytes:
        if self.algorithm in _CURVES:
            signature: bytes = self.key.sign(data, ec.ECDSA(_CURVES[self.algorithm][2]()))
        elif self.algorithm == -37:
            signature = self.key.sign(data, padding.PSS(padding.MGF1(SHA256()), 32), SHA256())
        else:
            signature = self.key.sign(data, padding.PKCS1v15(), SHA256())
        return signature
