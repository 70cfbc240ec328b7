"""CPU time and memory of process trees from /proc (Linux; on other systems the figures are missing)."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """A process tree at one moment: CPU seconds so far, of the tree and of each process, and resident MiB of each."""

    cpu: float
    cpu_of: dict[int, float]
    resident: dict[int, float]

    def worker_resident(self, earlier: "Usage") -> float:
        """Return the resident MiB of the process that worked most since `earlier`: the worker, not its supervisor."""
        if not self.cpu_of:
            return 0.0
        busiest = max(self.cpu_of, key=lambda pid: self.cpu_of[pid] - earlier.cpu_of.get(pid, 0.0))
        return self.resident.get(busiest, 0.0)


def usage(root: int) -> Usage:
    """Return the usage of the tree below `root`, including `root`.

    Each process counts its own time and that of its ended children that were waited for, so that the time of ended
    backends and workers is included.
    """
    cpu_of: dict[int, float] = {}
    resident: dict[int, float] = {}
    total = 0.0
    for pid in tree(root):
        times = cpu_times(pid)
        if times is None:
            continue
        own, ended = times
        cpu_of[pid] = own
        resident[pid] = resident_mebibytes(pid)
        total += own + ended
    return Usage(total, cpu_of, resident)


def tree(root: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir() if PROC.is_dir() else ():
        if entry.name.isdigit() and (fields := stat_fields(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting.extend(children.get(pid, ()))


def stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the third on: the second, the name, may contain blanks and
    parentheses."""
    try:
        return (PROC / str(pid) / "stat").read_text("utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def cpu_times(pid: int) -> tuple[float, float] | None:
    """Return the CPU seconds of the process itself, and of its ended children (proc(5): fields 14–15 and 16–17)."""
    fields = stat_fields(pid)
    if fields is None:
        return None
    user, system, children_user, children_system = map(int, fields[11:15])
    return (user + system) / TICK, (children_user + children_system) / TICK


def resident_mebibytes(pid: int) -> float:
    try:
        pages = int((PROC / str(pid) / "statm").read_text("utf-8").split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
