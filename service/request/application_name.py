"""`UseJsonApplicationName`: shows in PostgreSQL for which user and request a command runs (configuration-20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.database.preamble import Preamble
from rowcall.service.request_context.request_context import RequestContext

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

LONGEST = 63
"""Bytes; the server would truncate a longer name, with a notice each time."""


def _truncate(text: bytes) -> bytes:
    """Return the text cut to `LONGEST` bytes, at the end of a character: an incomplete one is invalid text, which the
    server rejects.
    """
    return text if len(text) <= LONGEST else text[:LONGEST].decode(errors="ignore").encode()


def application_name(_endpoint: Endpoint, services: Services) -> Preamble | None:
    """Return the preamble that sets application_name for the call, as in `{"app":"shop","uid":"7","id":null}`; None: it
    is off.
    """
    application = services.options.json_application_name
    if application is None:
        return None
    user_id = services.options.auth.identity.user_id

    def setting(context: RequestContext) -> tuple[bytes, bytes]:
        user = context.user
        members = {
            "app": application.application,
            "uid": None if user is None else user.first(user_id),
            "id": context.scope.headers.get(application.header),
        }
        return b"application_name", _truncate(orjson.dumps(members))

    return Preamble(settings=(setting,))
