"""Keys of replicas of the main database."""

from rowcall.core.config.keys import Key, choice, flag, interval, section, text, texts

_P = "ConnectionSettings:Replicas:"

ROWS: tuple[Key, ...] = (
    section("ConnectionSettings:Replicas", "Reading from replicas of the main database (streaming replication)."),
    flag(_P + "Enabled", False, "Send what only reads to replicas."),
    texts(
        _P + "ConnectionNames",
        ("Replica*",),
        "Which of the ConnectionStrings are replicas, `*` for any text. Each host of a string with several is one.",
    ),
    choice(
        _P + "Reads",
        "ReadOnly Annotated",
        "ReadOnly",
        "ReadOnly: STABLE and IMMUTABLE functions, reads of tables, and files that only read. Annotated: only what "
        "says `read_from replica`.",
    ),
    interval(
        _P + "MaxLag",
        "10 seconds",
        "A replica that is further behind is not read from. null: however far it is.",
        nullable=True,
    ),
    interval(
        _P + "WaitForWrite",
        "100 ms",
        "Longest wait for a replica to have what the client has written; then the primary is read.",
    ),
    interval(_P + "CheckInterval", "500 ms", "Between two looks of a worker at each server."),
    text(
        _P + "TokenCookie",
        "rowcall-position",
        "Cookie that tells what the client has written. null: none.",
        nullable=True,
    ),
    text(
        _P + "TokenHeader",
        "Read-After",
        "Header of answers that tells the same, and of requests that bring it back. null: none.",
        nullable=True,
    ),
    interval(_P + "TokenLifetime", "1 minute", "How long browsers keep the cookie."),
)
