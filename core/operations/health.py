"""How well the service is, and how that is told (caching-39 to caching-41, operations-3 to operations-6, operations-3
to operations-5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import orjson


class Status(Enum):
    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    """Requests are served, some of what is behind them is not there."""
    UNHEALTHY = "Unhealthy"


_FROM_BAD = (Status.UNHEALTHY, Status.DEGRADED)


@dataclass(frozen=True, slots=True)
class Finding:
    """Of one check. seconds: that it took."""

    check: str
    status: Status
    seconds: float = 0.0


def together(findings: Sequence[Finding]) -> Status:
    """The worst of them; without any, all is well."""
    found = {finding.status for finding in findings}
    return next((status for status in _FROM_BAD if status in found), Status.HEALTHY)


def status_code(status: Status) -> int:
    return 503 if status is Status.UNHEALTHY else 200


def as_text(status: Status) -> bytes:
    """The bare word."""
    return status.value.encode()


def as_json(findings: Sequence[Finding]) -> bytes:
    """`{"status":"Healthy","checks":[{"name":"postgresql","status":"Healthy","milliseconds":0.8}]}`; why a check has
    failed is for the log, as anybody may read this."""
    checks = [
        {"name": one.check, "status": one.status.value, "milliseconds": round(one.seconds * 1000, 1)}
        for one in findings
    ]
    return orjson.dumps({"status": together(findings).value, "checks": checks})
