"""An authenticator app: it computes codes as RFC 6238 says, without the library of the service."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
import time
from urllib.parse import parse_qs, urlsplit

STEP = 30


def code_at(secret: bytes, step: int) -> str:
    """Return the code of a step of 30 seconds since 1970 (RFC 4226, 5.3)."""
    digest = hmac.digest(secret, struct.pack(">Q", step), hashlib.sha1)
    start = digest[-1] & 15
    return f"{(struct.unpack_from('>I', digest, start)[0] & 0x7FFFFFFF) % 1_000_000:06}"


class AuthenticatorApp:
    """Reads the address of an enrolment. Each code is that of a later step than the one before.

    behind: steps by which its clock is late at first. The service has to accept as many, and as many early ones.
    """

    def __init__(self, address: str, behind: int = 7) -> None:
        parts = urlsplit(address)
        self.label = parts.path
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.secret = base64.b32decode(self.query["secret"])
        self.step = int(time.time()) // STEP - behind

    def code(self) -> str:
        self.step += 1
        return code_at(self.secret, self.step)
