"""Number of workers (`HttpServer:Workers`) and the processor cores of each (`HttpServer:CpuAffinity`)."""

from __future__ import annotations

import os

from rowcall.core.config import Settings
from rowcall.core.config.cpu_list import parse_cpu_groups
from rowcall.core.config.sections.http_server import HttpServer
from rowcall.service.startup_error import StartupError

_KEY = "HttpServer:CpuAffinity"

Cores = frozenset[int]


def allowed_cores() -> Cores | None:
    """Return the cores that this process may use by its affinity; None if the system does not report them. A cpuset of
    the container limits the affinity; a CPU quota does not."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def worker_count(settings: Settings) -> int:
    """Return the configured number of workers; by default one for each group of `CpuAffinity`, else for each core.

    Raises StartupError for an invalid `CpuAffinity`.
    """
    count = settings.read(HttpServer).workers
    if count is not None:
        return count
    if places := cores_by_worker(settings):
        return len(places)
    return len(allowed_cores() or ()) or os.cpu_count() or 1


def cores_of(settings: Settings, worker: int) -> Cores | None:
    """Return the cores of the worker with index `worker`, or None if no affinity is configured.

    If there are more workers than groups of cores, workers share groups. Raises StartupError.
    """
    places = cores_by_worker(settings)
    return places[worker % len(places)] if places else None


def cores_by_worker(settings: Settings) -> tuple[Cores, ...]:
    """Parse `HttpServer:CpuAffinity` into the cores of each worker; empty if the key is not set. Raises StartupError
    for an invalid value.

    One list of cores gives each worker one of these cores, and `auto` gives each worker one of all cores. Several
    lists, separated by semicolons, give each worker one list.
    """
    text = (settings.read(HttpServer).cpu_affinity or "").strip()
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
