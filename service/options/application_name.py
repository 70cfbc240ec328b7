"""What the service is called: to PostgreSQL, and where its name keeps the values of two services apart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rowcall.core.config import Settings


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


def application_name(settings: Settings) -> str:
    """The isolation boundary: different names cannot open each other's values (protection-6)."""
    return (
        settings.text_or_none("DataProtection:CustomApplicationName")
        or settings.text_or_none("ApplicationName")
        or Path.cwd().name
    )
