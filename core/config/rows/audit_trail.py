"""Keys of the audit trail, which the database stores (`Service:AuditTrail`)."""

from rowcall.core.config.keys import Key, flag, integer, interval, section, text

_P = "Service:AuditTrail:"

ROWS: tuple[Key, ...] = (
    section("Service:AuditTrail", "Who called what, written down in batches by a command."),
    flag(_P + "Enabled", False, "Write it down."),
    text(
        _P + "Command",
        "call audit_trail($1)",
        "SQL that keeps a batch: $1 JSON array of objects with at, endpoint, routine, userId, userName, "
        "impersonatorId, impersonatorName, scheme, address, status and milliseconds.",
    ),
    flag(_P + "EveryEndpoint", True, "All endpoints, but for `audit_trail off`. Otherwise those with `audit_trail`."),
    flag(_P + "SignIns", True, "Also the refreshing of tokens, passkeys, and sign-in through others."),
    interval(_P + "Interval", "1 second", "How long calls are gathered for one batch."),
    integer(_P + "BatchSize", 500, "Calls in one batch at most."),
    integer(_P + "QueueLimit", 10_000, "Calls that a worker holds while the database is away; older ones are dropped."),
)
