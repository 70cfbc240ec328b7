"""The key ring as data: keys that protect sessions and columns, the choice of the protecting key, and the time of the
next key.

The newest active key protects. Texts that any known key has protected can be opened, also after its expiry, so that a
rotation ends no session (protection-2). Pure: the time is a parameter, in seconds since 1970.
"""

from __future__ import annotations

import base64
import binascii
import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

ALGORITHMS: Mapping[str, int] = {
    "AES_128_CBC": 16,
    "AES_192_CBC": 24,
    "AES_256_CBC": 32,
    "AES_128_GCM": 16,
    "AES_192_GCM": 24,
    "AES_256_GCM": 32,
}
"""Size of the encryption key in bytes, by algorithm."""

DEFAULT_ALGORITHM = "AES_256_GCM"
DEFAULT_VALIDATION = "HMACSHA256"

SECRET = 64
"""Bytes of a key's secret, from which the keys of each purpose are derived."""

ANNOUNCED = 2 * 86_400.0
"""Seconds before its start at which the next key is created, so that other hosts read it in time."""


OVERLAP = 86_400.0
"""Seconds for which the next key is active before it is needed: clocks may differ, or be set back, by at most this
time."""


class KeyElementError(ValueError):
    """A stored element is no valid key of this service. The message gives the reason and contains nothing secret."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the ring. Times in seconds since 1970. secret: `SECRET` bytes; empty before it is decrypted. algorithm:
    one of `ALGORITHMS`. validation: `HMACSHA256` or `HMACSHA512`."""

    id: bytes
    """16 bytes; part of every sealed text."""
    created: float
    activated: float
    expires: float
    secret: bytes = field(repr=False)
    algorithm: str = DEFAULT_ALGORITHM
    validation: str = DEFAULT_VALIDATION

    @property
    def name(self) -> str:
        """Name of the element in a storage: `key-<guid>`."""
        return f"key-{uuid.UUID(bytes=self.id)}"

    def is_active(self, now: float) -> bool:
        return self.activated <= now < self.expires


@dataclass(frozen=True, slots=True)
class KeyRing:
    """All known keys."""

    keys: tuple[Key, ...] = ()
    read_at: float = 0.0
    """When the latest reading of the storage began, on the monotonic clock, which all processes of a host share.

    Infinite: no other host adds keys to the ring, so that it need not be read again.
    """

    def latest_active_key(self, now: float) -> Key | None:
        """Return the active key that was activated last; None: no key is active."""
        active = [key for key in self.keys if key.is_active(now)]
        return max(active, key=lambda key: (key.activated, key.id), default=None)

    def stable_interval(self, now: float) -> tuple[float, float]:
        """Return begin and end of the interval around `now` in which no key becomes active or inactive. The end is not
        part of it; without a key that changes before or after, begin or end is infinite."""
        moments = [moment for key in self.keys for moment in (key.activated, key.expires)]
        since = max((moment for moment in moments if moment <= now), default=-math.inf)
        return since, min((moment for moment in moments if moment > now), default=math.inf)

    def protecting_key(self, now: float) -> Key | None:
        """Return the key to protect with, even if none is active because a clock is wrong. None: the ring is empty.

        As texts of every known key can be opened, any key is better than none: the first that will be active, else the
        last that was.
        """
        if (active := self.latest_active_key(now)) is not None:
            return active
        coming = [key for key in self.keys if key.activated > now]
        if coming:
            return min(coming, key=lambda key: (key.activated, key.id))
        return max(self.keys, key=lambda key: (key.expires, key.id), default=None)

    def key(self, identity: bytes) -> Key | None:
        """Return the key with this id; None: it is unknown."""
        return next((key for key in self.keys if key.id == identity), None)

    def successor_start(self, now: float) -> float | None:
        """Return the time from which the next key has to protect: the expiry of the protecting key, or `now` if no key
        is active. None: the next key exists already, or need not be created yet."""
        protecting = self.latest_active_key(now)
        if protecting is None:
            return now
        if protecting.expires - now > ANNOUNCED:
            return None
        followed = any(key.activated <= protecting.expires < key.expires for key in self.keys)
        return None if followed else protecting.expires

    def next_read_time(self, now: float) -> float:
        """Return the time at which the ring has to be read again: in a day; earlier if the next key has to be created
        or the protecting key expires within that day; `now` if no key is active."""
        protecting = self.latest_active_key(now)
        if protecting is None:
            return now
        due = protecting.expires - ANNOUNCED
        return min(now + 86_400.0, due if due > now else protecting.expires)

    def with_keys(self, others: Iterable[Key], read_at: float | None = None) -> KeyRing:
        """Return a ring with further keys. A key of `others` replaces one with the same id; no key is ever removed,
        because texts that it has protected must stay readable.

        read_at: field `read_at` of the new ring; None: unchanged, because the keys do not come from a reading of the
        storage.
        """
        by_id = {key.id: key for key in self.keys} | {key.id: key for key in others}
        return KeyRing(tuple(by_id.values()), self.read_at if read_at is None else read_at)


def element_text(key: Key, secret: Mapping[str, str]) -> str:
    """Return a key as a JSON document for the storage.

    secret: the members with its secret, encrypted or plain (`service.protection.key_encryption`).
    """
    members = {
        "format": "rowcall-key-1",
        "id": str(uuid.UUID(bytes=key.id)),
        "created": key.created,
        "activated": key.activated,
        "expires": key.expires,
        "algorithm": key.algorithm,
        "validation": key.validation,
        "secret": dict(secret),
    }
    return orjson.dumps(members).decode()


def plain_secret(secret: bytes) -> dict[str, str]:
    """Return the storage form of an unencrypted secret."""
    return {"kind": "plain", "value": base64.b64encode(secret).decode()}


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as stored. key: its secret is empty. secret: members of the storage form of the secret, encrypted or
    plain."""

    key: Key
    secret: Mapping[str, str] = field(repr=False)

    def with_secret(self, secret: bytes) -> Key:
        """Return the key with this decrypted secret. Raises `KeyElementError` for a secret of the wrong size."""
        if len(secret) != SECRET:
            raise KeyElementError(f"{self.key.name}: its secret has the wrong size")
        key = self.key
        return Key(key.id, key.created, key.activated, key.expires, secret, key.algorithm, key.validation)


def read_element(text: str) -> StoredKey:
    """Parse a stored key, as `element_text` writes it. Its secret is not decrypted here. Raises `KeyElementError` if
    the text is not such a key."""
    try:
        members = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise KeyElementError("it is not JSON") from None
    if not isinstance(members, dict) or members.get("format") != "rowcall-key-1":
        raise KeyElementError("it is no key of this service")
    try:
        key = Key(
            uuid.UUID(str(members["id"])).bytes,
            float(members["created"]),
            float(members["activated"]),
            float(members["expires"]),
            b"",
            str(members["algorithm"]),
            str(members["validation"]),
        )
        secret = {str(name): str(value) for name, value in members["secret"].items()}
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
        raise KeyElementError("a member is missing or wrong") from None
    if not all(map(math.isfinite, (key.created, key.activated, key.expires))):
        raise KeyElementError("one of its times is not a number")
    if key.algorithm not in ALGORITHMS or key.validation not in ("HMACSHA256", "HMACSHA512"):
        raise KeyElementError("its algorithm is not known")
    return StoredKey(key, secret)


def open_plain(secret: Mapping[str, str]) -> bytes:
    """Return the secret from its unencrypted storage form, which `plain_secret` returns. Raises `KeyElementError` if it
    is not base64."""
    try:
        return base64.b64decode(secret.get("value", ""), validate=True)
    except (binascii.Error, ValueError):
        raise KeyElementError("its secret is not base64") from None
