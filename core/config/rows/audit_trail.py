"""Keys of the audit trail, which the database stores (`Service:AuditTrail`)."""

from rowcall.core.sections.keys import Key, flag, integer, interval, section, text

_P = "Service:AuditTrail:"

ROWS: tuple[Key, ...] = (
    section("Service:AuditTrail", "Records of calls (who called what), stored in batches by a command."),
    flag(_P + "Enabled", False, "Record calls."),
    text(
        _P + "Command",
        "call audit_trail($1)",
        "SQL that stores a batch: $1 JSON array of objects with at, endpoint, routine, userId, userName, "
        "impersonatorId, impersonatorName, scheme, address, status and milliseconds.",
    ),
    flag(
        _P + "EveryEndpoint",
        True,
        "Record all endpoints except those with `audit_trail off`. false: only those with `audit_trail`.",
    ),
    flag(_P + "SignIns", True, "Record also token refreshes, passkeys, and sign-in with providers."),
    interval(_P + "Interval", "1 second", "Time for which calls are collected for one batch."),
    integer(_P + "BatchSize", 500, "Maximum number of calls in a batch.", minimum=1),
    integer(
        _P + "QueueLimit",
        10_000,
        "Maximum number of calls that a worker holds while the database is unavailable; the oldest are dropped.",
        minimum=1,
    ),
)
