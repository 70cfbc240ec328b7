"""`UseJsonApplicationName`: PostgreSQL shows for whom and in which request a command runs (reference 06, 1.7)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from rowcall.core.endpoint import Endpoint
from rowcall.service.database.context import Context
from rowcall.service.exchange import Exchange

if TYPE_CHECKING:
    from rowcall.core.config import Settings
    from rowcall.service.handler import Services

LONGEST = 63
"""Bytes; the server would cut the rest off, and say so each time."""


@dataclass(frozen=True, slots=True)
class JsonApplicationName:
    """header: the request header, in lower case, that tells the requests of a client apart."""

    application: str
    header: str


def json_application_name(settings: Settings) -> JsonApplicationName | None:
    if not settings.flag("ConnectionSettings:UseJsonApplicationName"):
        return None
    application = settings.text_or_none("ApplicationName") or Path.cwd().name
    return JsonApplicationName(application, settings.text("Service:ExecutionIdHeaderName").lower())


def application_name(_endpoint: Endpoint, services: Services) -> Context | None:
    """`{"app":"shop","uid":"7","id":null}` as application_name for the time of the call."""
    shown = services.options.application_name
    if shown is None:
        return None
    user_id = services.options.auth.identity.user_id

    def setting(exchange: Exchange) -> tuple[bytes, bytes]:
        user = exchange.user
        members = {
            "app": shown.application,
            "uid": None if user is None else user.first(user_id),
            "id": exchange.scope.headers.get(shown.header),
        }
        return b"application_name", orjson.dumps(members)[:LONGEST]

    return Context(settings=(setting,))
