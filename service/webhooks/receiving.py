"""The step that verifies the signature of a received webhook, and the key under which the webhook is recorded."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.webhooks.signatures import (
    HeaderOf,
    MalformedError,
    SignatureError,
    check_secrets,
    delivery_of,
    verify,
)
from rowcall.service.request_context.request_context import RequestContext, Step

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


def verify_signature(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that refuses webhooks without a valid signature, before their body is parsed; None: the endpoint
    receives no webhooks.

    The step raises `Problem`: 400 if a header of the signature is missing, repeated or malformed, 403 if the signature
    does not match or is outside the tolerance of time.
    """
    webhook = endpoint.options.webhook
    if webhook is None:
        return None
    secrets = check_secrets(webhook.scheme, services.options.webhook_secrets[webhook.secret])

    def check(context: RequestContext) -> None:
        try:
            verify(
                webhook.scheme, secrets, webhook.tolerance, _single(context), context.body or b"", time.time()
            )  # fmt: skip
        except MalformedError as error:
            raise Problem(400, str(error)) from None
        except SignatureError as error:
            raise Problem(403, str(error)) from None

    return check


def delivery_key(endpoint: Endpoint, context: RequestContext) -> str:
    """Return the key of a verified delivery, which its repetitions have too."""
    webhook = endpoint.options.webhook
    assert webhook is not None  # noqa: S101 (called for such endpoints only)
    number = delivery_of(webhook.scheme, _single(context), context.body or b"").id
    return hashlib.sha256(f"{endpoint.name}\n{number}".encode(errors="surrogateescape")).hexdigest()


def _single(context: RequestContext) -> HeaderOf:
    """Return the function that returns the value of a header; None if the request does not have it, or has it several
    times.
    """
    headers = context.scope.headers

    def value(name: str) -> str | None:
        values = headers.get_all(name)
        return values[0] if len(values) == 1 else None

    return value
