"""One-time codes of authenticator apps (RFC 6238), and recovery codes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from urllib.parse import quote

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP

STEP = 30
"""Seconds for which a code is shown. Authenticator apps ignore other values in addresses for enrolment."""
DIGITS = 6
LONGEST_ACCOUNT = 100
_SECRET_BYTES = 20
"""RFC 4226, section 4, R6."""
_RECOVERY_BYTES = 10
_GROUP = 4


def new_secret() -> bytes:
    return secrets.token_bytes(_SECRET_BYTES)


def base32(secret: bytes) -> str:
    return base64.b32encode(secret).decode().rstrip("=")


def enrolment_address(secret: bytes, issuer: str, account: str) -> str:
    """Return the URL `otpauth://…` that an authenticator app reads, as a link or in a QR code. secret: from
    `new_secret`. issuer: name of the service that the app shows; may be empty. account: name of the user, of which the
    app shows `LONGEST_ACCOUNT` characters, as a QR code has little room."""
    account = account[:LONGEST_ACCOUNT]
    label = quote(f"{issuer}:{account}" if issuer else account, safe=":@")
    name = f"&issuer={quote(issuer, safe='')}" if issuer else ""
    return f"otpauth://totp/{label}?secret={base32(secret)}{name}&algorithm=SHA1&digits={DIGITS}&period={STEP}"


def plain_code(text: object) -> str | None:
    """Return the six digits of a code, without blanks; None: `text` is not a code of an authenticator app."""
    if not isinstance(text, str):
        return None
    code = "".join(text[:64].split())
    return code if len(code) == DIGITS and code.isascii() and code.isdigit() else None


def matching_step(secret: bytes, code: str, now: float, drift: int) -> int | None:
    """Return the number of the 30-second step since 1970 that has this code, the latest of several; None: no accepted
    step has it.

    secret: from `new_secret`. code: ASCII, from `plain_code`. now: in seconds since 1970. drift: number of steps before
    and after the current one that are accepted.
    """
    generator = HOTP(secret, DIGITS, SHA1(), enforce_key_length=False)  # noqa: S303 (RFC 6238)
    current = int(now // STEP)
    matching = None
    for step in range(max(0, current - drift), current + drift + 1):
        if hmac.compare_digest(generator.generate(step), code.encode()):
            matching = step
    return matching


def new_recovery_codes(count: int) -> tuple[str, ...]:
    """Return codes of 80 random bits, such as `k7qd-3vzm-ahx2-p5nr`."""
    return tuple(
        _group_characters(base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower()) for _ in range(count)
    )


def _group_characters(text: str) -> str:
    return "-".join(text[start : start + _GROUP] for start in range(0, len(text), _GROUP))


def recovery_hash(code: str) -> bytes:
    """Return the SHA-256 of a recovery code. Case, and all characters except letters and digits, do not matter. Only
    the first 64 characters count."""
    plain = "".join(letter for letter in code[:64].lower() if letter.isalnum())
    return hashlib.sha256(plain.encode()).digest()


def device_hash(value: str) -> bytes:
    return hashlib.sha256(value.encode()).digest()
