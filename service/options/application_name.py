"""Names of the service: the `application_name` of its database connections, and the name that separates its encrypted
values from those of other services."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rowcall.core.building.service import ServiceOptions
from rowcall.core.config import Settings
from rowcall.core.config.sections.application import ApplicationNames
from rowcall.core.config.sections.connections import ConnectionSettings
from rowcall.core.config.sections.data_protection import DataProtection


@dataclass(frozen=True, slots=True)
class JsonApplicationName:
    """Data of a JSON `application_name`. header: lower-case name of the request header with the execution id."""

    application: str
    header: str


def json_application_name(settings: Settings) -> JsonApplicationName | None:
    """Return the data of the JSON `application_name`, or None if `UseJsonApplicationName` is off."""
    if not settings.read(ConnectionSettings).names_request:
        return None
    return JsonApplicationName(application_name(settings), settings.read(ServiceOptions).execution_header.lower())


def encryption_name(settings: Settings) -> str:
    """Return the name that separates the encryption of services: services with different names cannot decrypt each
    other's values (protection-6). It is that of the section `DataProtection`, else `application_name`."""
    return settings.read(DataProtection).application or application_name(settings)


def application_name(settings: Settings) -> str:
    """Return the name of the application, which is that of the working directory unless the configuration has one."""
    return settings.read(ApplicationNames).application or Path.cwd().name
