"""Settings → how long requests may take."""

from __future__ import annotations

from rowcall.core.config import Settings
from rowcall.core.http.deadlines import FORMS, DeadlineOptions
from rowcall.service.startup_error import StartupError

_P = "Service:Deadlines:"


def deadline_options(settings: Settings) -> DeadlineOptions:
    """Raises `StartupError` for a header that nobody can read."""
    names = tuple(name.lower() for name in settings.texts(_P + "RequestHeaders") or ())
    for name in names:
        if name not in FORMS:
            raise StartupError(f"{_P}RequestHeaders: '{name}' is none of {', '.join(FORMS)}")
    return DeadlineOptions(names, settings.seconds(_P + "Shortest"), settings.seconds_or_none(_P + "Default"))
