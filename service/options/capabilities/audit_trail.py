"""`Service:AuditTrail` → what is written down of calls, and how."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.service.startup_error import StartupError

_P = "Service:AuditTrail:"


@dataclass(frozen=True, slots=True)
class AuditTrailOptions:
    command: str
    everything: bool
    """Endpoints that do not say `audit_trail`, too."""
    signing: bool
    """Refreshing, passkeys and sign-in through others."""
    seconds: float
    batch: int
    most: int


def audit_trail_options(settings: Settings) -> AuditTrailOptions | None:
    """None: nothing is written down."""
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
        settings.integer(_P + "BatchSize", minimum=1),
        settings.integer(_P + "QueueLimit", minimum=1),
    )
