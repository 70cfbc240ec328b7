"""Keys of server-sent events: streams, replay, and transport between hosts."""

from rowcall.core.config.keys import Key, choice, flag, integer, interval, section, text

_P = "Service:ServerSentEvents:"

ROWS: tuple[Key, ...] = (
    section("Service:ServerSentEvents", "Streams of events, beyond what the annotations say."),
    flag(
        _P + "AfterCommit",
        False,
        "Publish events when their transaction has committed, and not at all when it rolls back, where the endpoint "
        "does not say (`sse_after_commit`). false publishes at once, so that a long routine can tell how far it is.",
    ),
    flag(
        _P + "AuthorizeOnConnect",
        False,
        "Let only those subscribe who may call the stream's endpoint. false lets everybody, and filters each event.",
    ),
    flag(
        _P + "Replay",
        False,
        "Give events ids, and send whoever comes back with `Last-Event-ID` what has been missed.",
    ),
    integer(_P + "ReplayEvents", 1000, "Events that are kept for that."),
    integer(_P + "ReplayMegabytes", 16, "Their messages together, at most.", maximum=4096),
    interval(
        _P + "Heartbeat",
        "30 seconds",
        "How often a comment is sent over streams, which keeps proxies from closing idle ones. null: never.",
        nullable=True,
    ),
    interval(_P + "Retry", None, "How long clients wait before they connect again. null leaves it to them."),
    choice(
        _P + "SlowReaders",
        "DropOldest End",
        "DropOldest",
        "For a reader that does not keep up: drop the oldest of the events that wait for it, and tell it by an event "
        "named `gap`, or end its stream.",
    ),
    integer(_P + "SlowReaderEvents", 1000, "Events that wait for a slow reader, at most."),
    interval(_P + "SlowReaderPatience", "60 seconds", "A stream whose reader takes nothing for so long is cut off."),
    choice(
        _P + "BetweenHosts",
        "None Redis Postgres",
        "None",
        "How events reach the streams of other hosts: over Redis, over LISTEN and NOTIFY of the main database, or not "
        "at all.",
    ),
    text(_P + "Channel", "rowcall_events", "Name of the stream in Redis, or of the channel in PostgreSQL."),
    text(
        _P + "RedisConfiguration",
        None,
        "Connection string of Redis. null takes CacheOptions:RedisConfiguration.",
        secret=True,
    ),
)
