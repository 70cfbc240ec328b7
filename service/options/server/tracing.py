"""Read `Tracing`: which requests are traced, and the collector that receives their spans."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rowcall.core.config import Settings
from rowcall.service.startup_error import StartupError

_P = "Tracing:"
_STORED = 2000


@dataclass(frozen=True, slots=True)
class TracingOptions:
    endpoint: str
    headers: Mapping[str, str]
    resource: Mapping[str, str]
    ratio: float
    """Share (0 to 1) of traced requests, for requests without a sampling decision of the caller."""
    trusts: bool
    """Follow the sampling decision that a request carries."""
    names: bool
    """Set application_name to the trace, so that PostgreSQL shows it."""
    delay: float
    """Seconds for which spans are collected before they are sent."""
    stored: int = 0
    """Number of spans that a worker stores for the console; 0 without it."""


def tracing_options(settings: Settings) -> TracingOptions | None:
    """Return the options of tracing, or None if it is disabled. Raises StartupError for invalid settings."""
    if not settings.flag(_P + "Enabled"):
        return None
    if not _installed():
        raise StartupError("Tracing:Enabled needs the extra: pip install 'rowcall[tracing]'")
    names = settings.flag(_P + "ApplicationName")
    if names and settings.flag("ConnectionSettings:UseJsonApplicationName"):
        raise StartupError(
            "Tracing:ApplicationName and ConnectionSettings:UseJsonApplicationName both set application_name; "
            "enable only one of them"
        )
    endpoint = settings.text(_P + "Endpoint")
    if not endpoint.startswith(("http://", "https://")):
        raise StartupError(f"{_P}Endpoint: {endpoint!r} is no address such as http://localhost:4318")
    application = settings.text_or_none("ApplicationName") or Path.cwd().name
    return TracingOptions(
        endpoint,
        {name: text for name, text in settings.text_map(_P + "Headers").items() if text},
        {
            "service.name": application,
            "deployment.environment.name": settings.text_or_none("EnvironmentName") or "",
            **{name: text for name, text in settings.text_map(_P + "Resource").items() if text},
        },
        _ratio(settings),
        settings.flag(_P + "TrustCallers"),
        names,
        max(0.05, settings.seconds(_P + "Interval")),
        _STORED if settings.flag("Console:Enabled") else 0,
    )


def _installed() -> bool:
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http.trace_exporter") is not None
    except ImportError:
        return False


def _ratio(settings: Settings) -> float:
    text = settings.text(_P + "SampleRatio")
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0.0 <= ratio <= 1.0:
        raise StartupError(f"{_P}SampleRatio: {text!r} is no share between 0 and 1, such as 0.05")
    return ratio
