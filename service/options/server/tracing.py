"""Read `Tracing`: which requests are traced, and the collector that receives their spans."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

from rowcall.core.config import Settings
from rowcall.core.config.sections.application import ApplicationNames
from rowcall.core.config.sections.connections import ConnectionSettings
from rowcall.core.operations.console import ConsoleOptions
from rowcall.core.operations.tracing import TracingOptions
from rowcall.service.options.application_name import application_name
from rowcall.service.startup_error import StartupError

_STORED = 2000
"""Number of spans that a worker stores for the console."""


def tracing_options(settings: Settings) -> TracingOptions | None:
    """Return the options of tracing, or None if it is disabled. Raises StartupError for settings that cannot work."""
    if not settings.is_enabled(TracingOptions):
        return None
    if not _is_exporter_installed():
        raise StartupError("Tracing:Enabled needs the extra: pip install 'rowcall[tracing]'")
    options = settings.read(TracingOptions)
    if options.names and settings.read(ConnectionSettings).names_request:
        raise StartupError(
            "Tracing:ApplicationName and ConnectionSettings:UseJsonApplicationName both set application_name; "
            "enable only one of them"
        )
    sender = {
        "service.name": application_name(settings),
        "deployment.environment.name": settings.read(ApplicationNames).environment,
    }
    stored = _STORED if settings.is_enabled(ConsoleOptions) else 0
    return replace(options, resource={**sender, **options.resource}, stored=stored)


def _is_exporter_installed() -> bool:
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http.trace_exporter") is not None
    except ImportError:
        return False
