"""Read `Service:AuditTrail`: which calls are recorded, and the command that stores the records."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.service.startup_error import StartupError

_P = "Service:AuditTrail:"


@dataclass(frozen=True, slots=True)
class AuditTrailOptions:
    command: str
    everything: bool
    """Record also calls of endpoints without the annotation `audit_trail`."""
    signing: bool
    """Record also token refreshes, passkeys and sign-in with providers."""
    seconds: float
    batch: int
    most: int


def audit_trail_options(settings: Settings) -> AuditTrailOptions | None:
    """Return the options, or None if no audit trail is written. Raises StartupError without `Command`."""
    if not settings.flag(_P + "Enabled"):
        return None
    command = settings.text_or_none(_P + "Command")
    if not command:
        raise StartupError(f"{_P}Command is missing; it is SQL such as call audit_trail($1)")
    return AuditTrailOptions(
        command,
        settings.flag(_P + "EveryEndpoint"),
        settings.flag(_P + "SignIns"),
        max(0.05, settings.seconds(_P + "Interval")),
        settings.integer(_P + "BatchSize"),
        settings.integer(_P + "QueueLimit"),
    )
