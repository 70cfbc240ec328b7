"""Health status, and its form in responses (operations-3 to operations-5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import orjson


class Status(Enum):
    """State of the service."""

    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    """Requests are served, but a server behind the service is unavailable."""
    UNHEALTHY = "Unhealthy"


_FROM_BAD = (Status.UNHEALTHY, Status.DEGRADED)


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check. check: its name. seconds: its duration."""

    check: str
    status: Status
    seconds: float = 0.0


def worst_status(findings: Sequence[Finding]) -> Status:
    """Return the worst status of the findings; HEALTHY if there are none."""
    statuses = {finding.status for finding in findings}
    return next((status for status in _FROM_BAD if status in statuses), Status.HEALTHY)


def status_code(status: Status) -> int:
    """Return the HTTP status with which a health check reports the state: 503 for UNHEALTHY, else 200."""
    return 503 if status is Status.UNHEALTHY else 200


def as_text(status: Status) -> bytes:
    """Return the status as plain text."""
    return status.value.encode()


def as_json(findings: Sequence[Finding]) -> bytes:
    """Return the findings and the worst status as JSON:
    `{"status":"Healthy","checks":[{"name":"postgresql","status":"Healthy","milliseconds":0.8}]}`.

    The reasons of failures are only logged, because the response may be public.
    """
    checks = [
        {"name": finding.check, "status": finding.status.value, "milliseconds": round(finding.seconds * 1000, 1)}
        for finding in findings
    ]
    return orjson.dumps({"status": worst_status(findings).value, "checks": checks})
