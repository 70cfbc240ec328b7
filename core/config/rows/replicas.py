"""Keys of replicas of the main database."""

from rowcall.core.sections.keys import Key, choice, flag, interval, section, text, texts

_P = "ConnectionSettings:Replicas:"

ROWS: tuple[Key, ...] = (
    section("ConnectionSettings:Replicas", "Reading from replicas of the main database (streaming replication)."),
    flag(_P + "Enabled", False, "Run reads on replicas."),
    texts(
        _P + "ConnectionNames",
        ("Replica*",),
        "Names of ConnectionStrings of replicas; `*` is any text. Each host of a connection string is one replica.",
    ),
    choice(
        _P + "Reads",
        "ReadOnly Annotated",
        "ReadOnly",
        "ReadOnly: STABLE and IMMUTABLE functions, reads of tables, and files that only read. Annotated: only "
        "endpoints with `read_from replica`.",
    ),
    interval(
        _P + "MaxLag",
        "10 seconds",
        "A replica with more lag is not used. null: no limit.",
        nullable=True,
    ),
    interval(
        _P + "WaitForWrite",
        "100 ms",
        "Longest wait for a replica to receive the writes of the client; then the primary is used.",
    ),
    interval(_P + "CheckInterval", "500 ms", "Interval between checks of each server by a worker."),
    text(
        _P + "TokenCookie",
        "rowcall-position",
        "Cookie with the position of the client's last write. null: none.",
        nullable=True,
    ),
    text(
        _P + "TokenHeader",
        "Read-After",
        "Header of responses with the same position, which requests send back. null: none.",
        nullable=True,
    ),
    interval(_P + "TokenLifetime", "1 minute", "Lifetime of the cookie in browsers."),
)
