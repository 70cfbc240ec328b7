"""`HttpServer:CpuAffinity` and `HttpServer:Workers` → how many workers there are, and on which cores each runs."""

from __future__ import annotations

import os

from rowcall.core.config import Settings
from rowcall.core.text.cpu_list import parse_cpu_groups
from rowcall.service.startup_error import StartupError

_KEY = "HttpServer:CpuAffinity"

Cores = frozenset[int]


def allowed_cores() -> Cores | None:
    """Those that this process may use, in its container or slice; None where the system does not tell."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def worker_count(settings: Settings) -> int:
    """As configured, or one for each core, or group of cores, that there is."""
    count = settings.integer_or_none("HttpServer:Workers", minimum=1)
    if count is not None:
        return count
    if places := worker_places(settings):
        return len(places)
    return len(allowed_cores() or ()) or os.cpu_count() or 1


def cores_of(settings: Settings, worker: int) -> Cores | None:
    """None: wherever the system likes. With more workers than places, places are shared. Raises StartupError."""
    places = worker_places(settings)
    return places[worker % len(places)] if places else None


def worker_places(settings: Settings) -> tuple[Cores, ...]:
    """One list of cores gives each worker a core of it; several, separated by semicolons, give each worker a list."""
    text = (settings.text_or_none(_KEY) or "").strip()
    if not text:
        return ()
    allowed = allowed_cores()
    if allowed is None:
        raise StartupError(f"{_KEY}: this system keeps no process on chosen cores; leave the key out")
    if text.casefold() == "auto":
        return tuple(frozenset((core,)) for core in sorted(allowed))
    try:
        groups = parse_cpu_groups(text)
    except ValueError as error:
        raise StartupError(f"{_KEY}: {error}; 0-3,6 or 0-3;4-7 are such lists, and auto is all cores") from None
    if missing := frozenset().union(*groups) - allowed:
        raise StartupError(
            f"{_KEY}: there is no core {', '.join(map(str, sorted(missing)))} for this process; it may use "
            f"{', '.join(map(str, sorted(allowed)))}"
        )
    return groups if len(groups) > 1 else tuple(frozenset((core,)) for core in sorted(groups[0]))
