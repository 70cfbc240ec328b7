"""Read `Service:Deadlines`: request headers that set a deadline, and limits of deadlines."""

from __future__ import annotations

from rowcall.core.config import Settings
from rowcall.core.http.deadlines import FORMS, DeadlineOptions
from rowcall.service.startup_error import StartupError

_P = "Service:Deadlines:"


def deadline_options(settings: Settings) -> DeadlineOptions:
    """Return the deadline options. Raises `StartupError` for a header whose format is not supported (`FORMS`)."""
    names = tuple(name.lower() for name in settings.texts(_P + "RequestHeaders") or ())
    for name in names:
        if name not in FORMS:
            raise StartupError(f"{_P}RequestHeaders: '{name}' is none of {', '.join(FORMS)}")
    return DeadlineOptions(names, settings.seconds(_P + "Shortest"), settings.seconds_or_none(_P + "Default"))
