"""Options of the audit trail."""

from __future__ import annotations

from rowcall.core.sections.declaration import flag, integer, interval, section, text
from rowcall.core.sections.errors import ConfigError
from rowcall.core.sections.values import at_least, or_empty


@section("Service:AuditTrail", "Records of calls (who called what), stored in batches by a command.")
class AuditTrailOptions:
    """Options of the audit trail. Construction raises ConfigError if the command is empty."""

    enabled: bool = flag("Enabled", False, "Record calls.")
    command: str = text(
        "Command",
        "call audit_trail($1)",
        "SQL that stores a batch: $1 JSON array of objects with at, endpoint, job, message, routine, userId, userName, "
        "impersonatorId, impersonatorName, scheme, address, status and milliseconds.",
        empty=True,
        convert=or_empty,
    )
    everything: bool = flag(
        "EveryEndpoint",
        True,
        "Record all endpoints except those with `audit_trail off`, and webhooks that are sent. "
        "false: only those with `audit_trail`.",
    )
    signing: bool = flag("SignIns", True, "Record also token refreshes, passkeys, and sign-in with providers.")
    seconds: float = interval(
        "Interval", "1 second", "Time for which calls are collected for one batch.", convert=at_least(0.05)
    )
    batch: int = integer("BatchSize", 500, "Maximum number of calls in a batch.", minimum=1)
    most: int = integer(
        "QueueLimit",
        10_000,
        "Maximum number of calls that a worker holds while the database is unavailable; the oldest are dropped.",
        minimum=1,
    )

    def records(self, requested: bool | None) -> bool:
        """Return whether calls of an endpoint are recorded. requested: what its annotation says; None: it has none."""
        return self.everything if requested is None else requested

    def __post_init__(self) -> None:
        if not self.command:
            raise ConfigError("Service:AuditTrail:Command is missing; it is SQL such as call audit_trail($1)")
