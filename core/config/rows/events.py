"""Keys of server-sent events: streams, replay, and transport between hosts."""

from rowcall.core.sections.keys import Key, choice, flag, integer, interval, section, text

_P = "Service:ServerSentEvents:"

ROWS: tuple[Key, ...] = (
    section("Service:ServerSentEvents", "Server-sent events: settings of all streams."),
    flag(
        _P + "AfterCommit",
        False,
        "Publish events after the commit of their transaction, and not at all after a rollback, for endpoints without "
        "`sse_after_commit`. false: publish at once, so that a long routine can report its progress.",
    ),
    flag(
        _P + "AuthorizeOnConnect",
        False,
        "Only callers that may call the stream's endpoint may subscribe. false: all may subscribe, and each event is "
        "filtered.",
    ),
    flag(
        _P + "Replay",
        False,
        "Send events with ids; a client that reconnects with `Last-Event-ID` receives the missed events.",
    ),
    integer(_P + "ReplayEvents", 1000, "Maximum number of events in the replay buffer.", minimum=1),
    integer(_P + "ReplayMegabytes", 16, "Maximum size of the messages in the replay buffer.", minimum=1, maximum=4096),
    interval(
        _P + "Heartbeat",
        "30 seconds",
        "Interval of comments in streams, which keep proxies from closing idle connections. null: none.",
        nullable=True,
    ),
    interval(_P + "Retry", None, "Delay after which clients reconnect. null: the client decides."),
    choice(
        _P + "SlowReaders",
        "DropOldest End",
        "DropOldest",
        "For a slow reader with a full queue: drop its oldest events and send an event named `gap`, or end its stream.",
    ),
    integer(_P + "SlowReaderEvents", 1000, "Maximum number of queued events for a slow reader.", minimum=1),
    interval(
        _P + "SlowReaderTimeout",
        "60 seconds",
        "A stream ends if its reader takes no events for this time while some are queued.",
    ),
    choice(
        _P + "BetweenHosts",
        "None Redis Postgres",
        "None",
        "Transport of events to other hosts: Redis, LISTEN and NOTIFY of the main database, or none.",
    ),
    text(_P + "Channel", "rowcall_events", "Name of the stream in Redis, or of the channel in PostgreSQL."),
    text(
        _P + "RedisConfiguration",
        None,
        "Connection string of Redis. null: CacheOptions:RedisConfiguration.",
        secret=True,
    ),
)
