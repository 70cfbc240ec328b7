"""Signatures of webhooks over the body as it is sent: those of several senders, and those of this service.

Sources: the specification of Standard Webhooks, and the manuals of Stripe, GitHub, Slack and Shopify.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import orjson

from rowcall.core.endpoint.capabilities import WebhookScheme

HeaderOf = Callable[[str], str | None]
"""Function that returns the value of a header by its name in lower case; None: the request has no such header."""

_SECRET, _PUBLIC_KEY, _PRIVATE_KEY = "whsec_", "whpk_", "whsk_"


class SecretError(ValueError):
    """A secret of the configuration does not have the form that its scheme needs."""


class MalformedError(ValueError):
    """A header is missing or malformed."""


class SignatureError(ValueError):
    """The signature does not match, or is too old."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery as its headers state it."""

    signed: bytes
    """The bytes that are signed."""
    signatures: tuple[str, ...]
    """As the headers have them, without names of schemes except those of Standard Webhooks (`v1,…`)."""
    timestamp: int | None
    """Seconds since 1970; None: the scheme has no time."""
    id: str
    """Id of the delivery: the same for its repetitions, and covered by the signature."""


def check_secrets(scheme: WebhookScheme, secrets: str, *, signs: bool = False) -> tuple[str, ...]:
    """Return the secrets in a value of the configuration, where they are separated by spaces.

    signs: they are for webhooks that are sent. Raises `SecretError` if there is none, a key is of the wrong kind
    (private for verifying, public for signing), or one does not have the form that Standard Webhooks require.
    """
    values = tuple(secrets.split())
    if not values:
        raise SecretError("is empty")
    wrong = _PUBLIC_KEY if signs else _PRIVATE_KEY
    if any(secret.startswith(wrong) for secret in values):
        raise SecretError(f"has a key {wrong}, which can only {'verify' if signs else 'sign'}")
    if scheme is WebhookScheme.STANDARD:
        for secret in values:
            _standard_key(secret)
    return values


def verify(
    scheme: WebhookScheme, secrets: Sequence[str], tolerance: float, header: HeaderOf, body: bytes, now: float
) -> None:
    """Verify one received delivery; return if one of the secrets matches and the signature is not too old.

    secrets: from `check_secrets`. tolerance: maximum difference in seconds between `now` and the time of the signature,
    in both directions. now: seconds since 1970. Raises `SignatureError` otherwise, and `MalformedError` if the headers
    are missing or malformed.
    """
    delivery = delivery_of(scheme, header, body)
    if not any(_matches(scheme, secret, delivery) for secret in secrets):
        raise SignatureError("the signature of this webhook does not match its body: compare the secrets of both sides")
    if delivery.timestamp is not None and abs(now - delivery.timestamp) > tolerance:
        raise SignatureError(
            f"this webhook was signed {now - delivery.timestamp:.0f} s ago, and {tolerance:g} s are allowed"
        )


def signature_headers(secrets: Sequence[str], number: str, timestamp: int, body: bytes) -> list[tuple[str, str]]:
    """Return the headers of a webhook that is sent, with a signature for each secret (Standard Webhooks).

    number: id of the message. timestamp: seconds since 1970. Raises `SecretError` for a secret without the form of a
    key.
    """
    signed = _join_bytes(number, ".", str(timestamp), ".", body)
    return [
        ("webhook-id", number),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", " ".join(_signature(secret, signed) for secret in secrets)),
    ]


def _signature(secret: str, signed: bytes) -> str:
    """Return the signature by a secret (`v1`, HMAC) or by a private key (`v1a`, Ed25519). Raises `SecretError` for a
    secret without the form of a key."""
    key = _standard_key(secret)
    if not secret.startswith(_PRIVATE_KEY):
        return f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"
    # Only asymmetric signatures need it.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    signature = Ed25519PrivateKey.from_private_bytes(key[:32]).sign(signed)
    return f"v1a,{base64.b64encode(signature).decode()}"


def delivery_of(scheme: WebhookScheme, header: HeaderOf, body: bytes) -> Delivery:
    """Return a received delivery as its headers state it, unverified. Raises `MalformedError` if a header is missing or
    malformed."""
    return _READERS[scheme](header, body)


def _standard(header: HeaderOf, body: bytes) -> Delivery:
    # Senders that are older than the standard use the names of Svix.
    prefix = "webhook" if header("webhook-id") is not None else "svix"
    if header(prefix + "-id") is None:
        prefix = "webhook"
    number, time = _required_header(header, prefix + "-id"), _required_header(header, prefix + "-timestamp")
    signatures = tuple(_required_header(header, prefix + "-signature").split())
    return Delivery(
        _join_bytes(number, ".", time, ".", body), signatures, _seconds(prefix + "-timestamp", time), number
    )


def _stripe(header: HeaderOf, body: bytes) -> Delivery:
    parts = [part.strip().partition("=") for part in _required_header(header, "stripe-signature").split(",")]
    times = [value for name, _, value in parts if name == "t"]
    if len(times) != 1:
        raise MalformedError("the header Stripe-Signature has no time t=…")
    signatures = tuple(value for name, _, value in parts if name == "v1")
    signed = _join_bytes(times[0], ".", body)
    return Delivery(signed, signatures, _seconds("Stripe-Signature", times[0]), _member(body, "id") or _digest(signed))


def _github(header: HeaderOf, body: bytes) -> Delivery:
    scheme, _, signature = _required_header(header, "x-hub-signature-256").partition("=")
    if scheme != "sha256":
        raise MalformedError("the header X-Hub-Signature-256 does not begin with sha256=")
    # X-GitHub-Delivery is not signed, but the body of each delivery differs.
    return Delivery(body, (signature,), None, signature.lower())


def _slack(header: HeaderOf, body: bytes) -> Delivery:
    version, _, signature = _required_header(header, "x-slack-signature").partition("=")
    if version != "v0":
        raise MalformedError("the header X-Slack-Signature does not begin with v0=")
    time = _required_header(header, "x-slack-request-timestamp")
    signed = _join_bytes("v0:", time, ":", body)
    number = _member(body, "event_id") or _digest(signed)
    return Delivery(signed, (signature,), _seconds("X-Slack-Request-Timestamp", time), number)


def _shopify(header: HeaderOf, body: bytes) -> Delivery:
    signature = _required_header(header, "x-shopify-hmac-sha256")
    return Delivery(body, (signature,), None, signature)


_READERS: dict[WebhookScheme, Callable[[HeaderOf, bytes], Delivery]] = {
    WebhookScheme.STANDARD: _standard,
    WebhookScheme.STRIPE: _stripe,
    WebhookScheme.GITHUB: _github,
    WebhookScheme.SLACK: _slack,
    WebhookScheme.SHOPIFY: _shopify,
}


def _matches(scheme: WebhookScheme, secret: str, delivery: Delivery) -> bool:
    """Return whether one of the signatures of a delivery is by this secret."""
    if scheme is WebhookScheme.STANDARD:
        return _matches_standard(secret, delivery)
    digest = hmac.digest(secret.encode(), delivery.signed, "sha256")
    expected = base64.b64encode(digest).decode() if scheme is WebhookScheme.SHOPIFY else digest.hex()
    return _matches_any(expected, delivery.signatures)


def _matches_standard(secret: str, delivery: Delivery) -> bool:
    key = _standard_key(secret)
    versions = [signature.partition(",") for signature in delivery.signatures]
    if not secret.startswith(_PUBLIC_KEY):
        expected = base64.b64encode(hmac.digest(key, delivery.signed, "sha256")).decode()
        return _matches_any(expected, (value for version, _, value in versions if version == "v1"))
    # Only asymmetric signatures need it.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    for version, _, value in versions:
        if version == "v1a":
            try:
                Ed25519PublicKey.from_public_bytes(key).verify(_decode_base64(value), delivery.signed)
            except (InvalidSignature, ValueError):
                continue
            return True
    return False


def _standard_key(secret: str) -> bytes:
    """Return the bytes of a key in base64, which may have a prefix. Raises `SecretError` if the text is not base64 or
    empty, or if an Ed25519 key has a wrong size."""
    prefix = next((item for item in (_PUBLIC_KEY, _PRIVATE_KEY) if secret.startswith(item)), _SECRET)
    try:
        key = _decode_base64(secret.removeprefix(prefix))
    except ValueError:
        raise SecretError("is not base64 behind whsec_, whpk_ or whsk_") from None
    if not key:
        raise SecretError(f"has no key behind {prefix}")
    # A private key may have its public key behind it, as libsodium has them.
    if prefix != _SECRET and len(key) not in ((32,) if prefix == _PUBLIC_KEY else (32, 64)):
        raise SecretError(f"is no Ed25519 key of 32 bytes behind {prefix}")
    return key


def _matches_any(expected: str, signatures: Iterable[str]) -> bool:
    """Return whether one of the signatures is the expected one. The time does not depend on their texts."""
    matches = [hmac.compare_digest(expected.encode(), signature.encode(errors="replace")) for signature in signatures]
    return any(matches)


def _decode_base64(text: str) -> bytes:
    """Return the bytes of a text in base64. Raises `ValueError`."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _required_header(header: HeaderOf, name: str) -> str:
    """Return a header without blanks around it. Raises `MalformedError` if it is missing or blank."""
    value = header(name)
    if value is None or not value.strip():
        raise MalformedError(f"the header {name} is missing, which signs a webhook")
    return value.strip()


def _seconds(name: str, text: str) -> int:
    """Return a number of at most 15 digits. name: of its header, for the error. Raises `MalformedError`."""
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise MalformedError(f"the header {name} has no time in seconds")
    return int(text)


def _join_bytes(*parts: str | bytes) -> bytes:
    """Return the parts, texts in UTF-8, as one text of bytes."""
    return b"".join(part if isinstance(part, bytes) else part.encode(errors="surrogateescape") for part in parts)


def _digest(signed: bytes) -> str:
    return hashlib.sha256(signed).hexdigest()


def _member(body: bytes, name: str) -> str:
    """Return a member of a JSON body that is a text; empty if there is no such member, or if it is no text."""
    try:
        value = orjson.loads(body)[name]
    except (ValueError, TypeError, KeyError):
        return ""
    return value if isinstance(value, str) else ""
