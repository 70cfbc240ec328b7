"""Names of the service: `application_name` of its database connections, and the isolation boundary of protected
values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rowcall.core.config import Settings


@dataclass(frozen=True, slots=True)
class JsonApplicationName:
    """Data of a JSON `application_name`. header: lower-case name of the request header with the execution id."""

    application: str
    header: str


def json_application_name(settings: Settings) -> JsonApplicationName | None:
    """Return the data of the JSON `application_name`, or None if `UseJsonApplicationName` is off."""
    if not settings.flag("ConnectionSettings:UseJsonApplicationName"):
        return None
    application = settings.text_or_none("ApplicationName") or Path.cwd().name
    return JsonApplicationName(application, settings.text("Service:ExecutionIdHeaderName").lower())


def application_name(settings: Settings) -> str:
    """Return the isolation boundary of encryption: services with different names cannot decrypt each other's values
    (protection-6).
    """
    return (
        settings.text_or_none("DataProtection:CustomApplicationName")
        or settings.text_or_none("ApplicationName")
        or Path.cwd().name
    )
