"""Keys of databases: connection strings, opening of connections, and connection pools."""

from rowcall.core.sections.keys import Key, choice, flag, integer, interval, numbers, section, text, text_map, texts

_ROLES = "Any Primary Standby PreferPrimary PreferStandby ReadWrite ReadOnly"

ROWS: tuple[Key, ...] = (
    text_map(
        "ConnectionStrings",
        {
            "Default": "Host={!PGHOST:localhost};Port={!PGPORT:5432};Database={!PGDATABASE};"
            "Username={!PGUSER:postgres};Password={!PGPASSWORD:postgres}"
        },
        "Named databases. A value is a URI (`postgresql://user@host/db`), libpq keywords (`host=… dbname=…`), "
        "the form `Host=…;Database=…;Username=…;Password=…`, or `embedded:PATH` for a private PostgreSQL in a folder.",
        secret=True,
    ),
    section("ConnectionSettings", "Settings of all connections."),
    flag(
        "ConnectionSettings:SetApplicationNameInConnection",
        True,
        "Show ApplicationName as the application_name of every connection.",
    ),
    flag(
        "ConnectionSettings:UseJsonApplicationName",
        False,
        "Show `{app, uid, id}` of the request as application_name instead of ApplicationName.",
    ),
    flag(
        "ConnectionSettings:TestConnectionStrings",
        True,
        "Open every configured database once at the start; a failure prevents the start.",
    ),
    section("ConnectionSettings:RetryOptions", "Further attempts to open a connection after a failure."),
    flag("ConnectionSettings:RetryOptions:Enabled", True, "Try again if a connection cannot be opened."),
    numbers(
        "ConnectionSettings:RetryOptions:RetrySequenceSeconds",
        (1, 3, 6, 12),
        "Seconds to wait before each new attempt; their number is the number of attempts after the first.",
    ),
    texts(
        "ConnectionSettings:RetryOptions:ErrorCodes",
        ("08000", "08003", "08006", "08001", "08004", "55P03", "55006", "53300", "57P03", "40001"),
        "SQLSTATEs that lead to another attempt. Network errors always do; a wrong password never does.",
    ),
    text(
        "ConnectionSettings:MetadataQueryConnectionName",
        None,
        "Connection from whose catalogue routines are read. null: the main connection.",
    ),
    text(
        "ConnectionSettings:MetadataQuerySchema",
        None,
        "search_path while the catalogue is read. null: the default of the server.",
    ),
    section(
        "ConnectionSettings:MultiHostConnectionTargets", "Choice of the server for connections with several hosts."
    ),
    choice(
        "ConnectionSettings:MultiHostConnectionTargets:Default",
        _ROLES,
        "Any",
        "Required role of the server, for connections without an entry in ByConnectionName.",
    ),
    text_map(
        "ConnectionSettings:MultiHostConnectionTargets:ByConnectionName",
        {},
        "Required roles of servers by name of the connection.",
        choices=_ROLES,
    ),
    section("ConnectionSettings:Pool", "Connection pools of each worker process."),
    flag(
        "ConnectionSettings:Pool:Sharing",
        True,
        "Let many requests use one connection at the same time (pipelining). false: each running request has a "
        "connection of its own.",
    ),
    integer(
        "ConnectionSettings:Pool:SharedConnections",
        2,
        "Connections of a worker that many fast requests share (pipelined pool).",
    ),
    integer(
        "ConnectionSettings:Pool:SharedDepth",
        16,
        "Maximum number of requests in flight on one shared connection; further ones wait in the queue.",
    ),
    flag(
        "ConnectionSettings:Pool:ShareWrites",
        True,
        "Let VOLATILE routines share connections too, if they are fast and have no session effects. They use a "
        "separate pool, so that reads never wait behind a lock.",
    ),
    flag(
        "ConnectionSettings:Pool:TrustStable",
        False,
        "Assume that STABLE and IMMUTABLE routines have no session effects, also with dynamic SQL: they share "
        "connections without a reset. If one has session effects, they reach other requests.",
    ),
    integer(
        "ConnectionSettings:Pool:WriteConnections",
        16,
        "Maximum number of connections of a worker that VOLATILE routines share. Opened on demand: the longer commits "
        "take, the more.",
    ),
    integer(
        "ConnectionSettings:Pool:WriteDepth",
        4,
        "Maximum number of requests in flight on one of these connections.",
    ),
    integer(
        "ConnectionSettings:Pool:ExclusiveConnections",
        16,
        "Maximum number of connections of a worker that serve one request at a time (dedicated pool): slow, streaming, "
        "writing or not yet measured routines. Opened on demand.",
    ),
    integer(
        "ConnectionSettings:Pool:QueueLimit",
        1000,
        "Maximum number of requests of a worker that wait for a connection. Further ones get 503 with Retry-After at "
        "once.",
    ),
    interval(
        "ConnectionSettings:Pool:QueueTimeout",
        "5 seconds",
        "Longest wait for a connection; then the request gets 503 with Retry-After.",
    ),
    interval(
        "ConnectionSettings:Pool:QueueTarget",
        "500 ms",
        "Longest wait if the queue has not been empty for `QueueInterval`, which means overload; requests that wait "
        "longer get 503 with Retry-After. null: QueueTimeout applies then too.",
        nullable=True,
    ),
    interval(
        "ConnectionSettings:Pool:QueueInterval",
        "5 seconds",
        "Time after which a queue that was never empty counts as overload.",
    ),
    flag(
        "ConnectionSettings:Pool:TransactionPooler",
        False,
        "A transaction pooler (PgBouncer, Supavisor) is between the service and PostgreSQL: the session has no state, "
        "and statements are not prepared by name.",
    ),
    interval(
        "ConnectionSettings:Pool:SlowThreshold",
        "3 ms",
        "A routine whose usual duration is longer moves to the dedicated pool.",
    ),
    integer(
        "ConnectionSettings:Pool:StreamAfterBytes",
        524_288,
        "Response bytes that are collected before streaming begins.",
    ),
    interval(
        "ConnectionSettings:Pool:SlowClientTimeout",
        "60 seconds",
        "A client that reads no bytes of a streamed response for this time is disconnected; its query is cancelled.",
    ),
    interval(
        "ConnectionSettings:Pool:ShutdownTimeout",
        "30 seconds",
        "Longest wait for running requests when the service stops.",
    ),
)
