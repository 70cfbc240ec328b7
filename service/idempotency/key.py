"""The header `Idempotency-Key`, the caller to whom a key belongs, and the digest of a request."""

from __future__ import annotations

import hashlib
import re

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.header_values import read_header
from rowcall.service.request_context.request_context import RequestContext, Step

HEADER = "idempotency-key"
LONGEST = 255
"""Characters of the longest key."""

_PLAIN = re.compile(r"[\x21\x23-\x7e]+")
_QUOTED = re.compile(r'"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')


def key_of(context: RequestContext) -> str | None:
    """Return the idempotency key of a request; None if it has none.

    The header is a quoted string (RFC 8941, 3.3.3), or the same without quotes. Raises `Problem` 400 for any other
    value.
    """
    headers = context.scope.headers
    values = headers.get_all(HEADER)
    if not values and HEADER not in headers:
        return None
    if len(values) > 1:
        raise Problem(400, "the header Idempotency-Key is there twice")
    # A value with other characters than ASCII is not in the list.
    text = values[0].strip() if values else ""
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        text = re.sub(r"\\(.)", r"\1", quoted[1])
    key = text if quoted is not None or _PLAIN.fullmatch(text) else ""
    if not 0 < len(key) <= LONGEST:
        raise Problem(
            400,
            f"the header Idempotency-Key has to be a text of 1 to {LONGEST} printable ASCII characters, such as a UUID",
        )
    return key


def check_key(endpoint: Endpoint, _services: Services) -> Step | None:
    """Return the step that raises `Problem` 400 for a request with an invalid key, or without a required one, before
    its body is read; None: the endpoint takes no keys."""
    idempotency = endpoint.options.idempotency
    if idempotency is None or endpoint.options.webhook is not None:
        return None

    def check(context: RequestContext) -> None:
        if key_of(context) is None and idempotency.required:
            raise Problem(
                400,
                "this endpoint requires the header Idempotency-Key: a new UUID for each request, and the same one to "
                "repeat it",
            )

    return check


def digest_of(context: RequestContext, representation: str) -> bytes:
    """Return the digest of method, path, query string, content type, body and representation, as text of a bytea.

    representation: format and time zone of the result, if the request chooses them, and its conditions on the version
    of a row; empty: it has neither, so the digest is that of former versions, whose keys are stored.
    """
    scope = context.scope
    whole = hashlib.sha256()
    content_type = read_header(scope.headers, "content-type") or ""
    if representation:
        content_type = f"{content_type}\n{representation}"
    for part in (scope.method, scope.path, scope.query_string, content_type):
        whole.update(b"%d:" % len(part))
        whole.update(part.encode(errors="surrogateescape"))
    whole.update(context.body or b"")
    return b"\\x" + whole.hexdigest().encode()
