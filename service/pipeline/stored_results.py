"""Results that the service stores for later: of jobs, and of requests with an idempotency key.

If the endpoint decrypts columns, they are encrypted again as a whole, so that the tables of the service and backups of
the database contain only ciphertext. A stored result that is encrypted begins with `MARK`.
"""

from __future__ import annotations

from collections.abc import Callable

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import unavailable
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.errors import NoKeyError, SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys, Protector

MARK = b"\0encrypted\0"
PURPOSE = "stored results"

SealResult = Callable[[bytes, bytes], bytes]
"""Returns the body of a result (first) as it is stored in a record (second: what identifies the record)."""


def result_sealer(endpoint: Endpoint, services: Services) -> SealResult | None:
    """Return the function that encrypts results of the endpoint, which raises `UnavailableError` without a key; None:
    the endpoint decrypts nothing, so that its results are stored as they are."""
    encryption = endpoint.options.encryption
    if encryption is None or not services.options.encrypts or not (encryption.all_columns or encryption.columns):
        return None
    protector = Protector(services.auth.keys, PURPOSE)

    def seal(body: bytes, record: bytes) -> bytes:
        try:
            return MARK + protector.seal(body, record).encode()
        except NoKeyError:
            raise unavailable("there is no key to encrypt with at the moment") from None

    return seal


async def open_result(keys: Keys, body: bytes, record: bytes) -> bytes:
    """Return the body of a stored result, decrypted if it is encrypted. If the key is unknown, the keys are read again.
    Raises `UnavailableError` if it is still unknown then. record: what identifies the record."""
    if not body.startswith(MARK):
        return body
    protector, text = Protector(keys, PURPOSE), body[len(MARK) :].decode(errors="replace")
    try:
        try:
            return protector.open(text, record)
        except UnknownKeyError:
            await keys.read_again()
            return protector.open(text, record)
    except UnknownKeyError:
        raise unavailable("the stored result is encrypted with a key that this service does not have") from None
    except SealError:
        return body  # a result of the routine that only begins like an encrypted one
