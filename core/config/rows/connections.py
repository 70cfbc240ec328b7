"""Keys of databases: connection strings, opening of connections, and connection pools."""

from rowcall.core.config.keys import Key, choice, flag, integer, interval, numbers, section, text, text_map, texts

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
    section("ConnectionSettings", "What holds for all connections."),
    flag(
        "ConnectionSettings:SetApplicationNameInConnection",
        True,
        "Show ApplicationName as the application_name of every connection.",
    ),
    flag(
        "ConnectionSettings:UseJsonApplicationName",
        False,
        "Show `{app, uid, id}` of the request as application_name instead.",
    ),
    flag(
        "ConnectionSettings:TestConnectionStrings",
        True,
        "Open every configured database once at the start; one that fails stops the start.",
    ),
    section("ConnectionSettings:RetryOptions", "Opening a connection again after a failure."),
    flag("ConnectionSettings:RetryOptions:Enabled", True, "Try again when a connection can't be opened."),
    numbers(
        "ConnectionSettings:RetryOptions:RetrySequenceSeconds",
        (1, 3, 6, 12),
        "Seconds to wait before each new attempt; their number is the number of attempts after the first.",
    ),
    texts(
        "ConnectionSettings:RetryOptions:ErrorCodes",
        ("08000", "08003", "08006", "08001", "08004", "55P03", "55006", "53300", "57P03", "40001"),
        "SQLSTATEs that are worth another attempt. Network errors always are; a wrong password never is.",
    ),
    text(
        "ConnectionSettings:MetadataQueryConnectionName",
        None,
        "Connection whose catalogue is read for routines. null takes the main connection.",
    ),
    text(
        "ConnectionSettings:MetadataQuerySchema",
        None,
        "search_path while the catalogue is read. null leaves the server's own.",
    ),
    section("ConnectionSettings:MultiHostConnectionTargets", "Which server of several hosts is wanted."),
    choice(
        "ConnectionSettings:MultiHostConnectionTargets:Default",
        _ROLES,
        "Any",
        "Role wanted when the connection has no entry of its own.",
    ),
    text_map(
        "ConnectionSettings:MultiHostConnectionTargets:ByConnectionName",
        {},
        "Role wanted for a connection, by its name.",
        choices=_ROLES,
    ),
    section("ConnectionSettings:Pool", "How each worker process shares its database connections among requests."),
    flag(
        "ConnectionSettings:Pool:Sharing",
        True,
        "Let many requests travel on one connection at the same time (pipelining). false gives every running request "
        "a connection of its own.",
    ),
    integer(
        "ConnectionSettings:Pool:SharedConnections",
        2,
        "Connections of a worker that many fast requests share.",
    ),
    integer(
        "ConnectionSettings:Pool:SharedDepth",
        16,
        "Most requests under way on one shared connection; more wait in the queue.",
    ),
    flag(
        "ConnectionSettings:Pool:ShareWrites",
        True,
        "VOLATILE routines share connections too, where they are fast and were found to leave nothing in their "
        "session. They have connections of their own, so that a wait for a lock never stands before a read.",
    ),
    flag(
        "ConnectionSettings:Pool:TrustStable",
        False,
        "Take STABLE and IMMUTABLE routines at their word that they leave nothing in their session, dynamic SQL "
        "included: they share connections without being reset. What one leaves all the same reaches other requests.",
    ),
    integer(
        "ConnectionSettings:Pool:WriteConnections",
        16,
        "Most connections of a worker that VOLATILE routines share. Opened when needed: the more, the longer commits "
        "take.",
    ),
    integer(
        "ConnectionSettings:Pool:WriteDepth",
        4,
        "Most requests under way on one of these connections.",
    ),
    integer(
        "ConnectionSettings:Pool:ExclusiveConnections",
        16,
        "Most connections of a worker that serve one request at a time: slow, streaming, writing or not yet measured "
        "routines. Opened when needed.",
    ),
    integer(
        "ConnectionSettings:Pool:QueueLimit",
        1000,
        "Most requests of a worker that wait for a connection. The next one is answered 503 with Retry-After at once.",
    ),
    interval(
        "ConnectionSettings:Pool:QueueTimeout",
        "5 seconds",
        "Longest wait for a connection; then the request is answered 503 with Retry-After.",
    ),
    interval(
        "ConnectionSettings:Pool:QueueTarget",
        "500 ms",
        "Longest wait while the queue has not been empty for `QueueInterval`: more comes than can be answered then, "
        "and who waits longer is answered 503 with Retry-After. null: the QueueTimeout holds then too.",
        nullable=True,
    ),
    interval(
        "ConnectionSettings:Pool:QueueInterval",
        "5 seconds",
        "After this a queue that was never empty counts as one that does not end.",
    ),
    flag(
        "ConnectionSettings:Pool:TransactionPooler",
        False,
        "A transaction pooler (PgBouncer, Supavisor) stands between: nothing is kept on the session, no statement is "
        "prepared by name.",
    ),
    interval(
        "ConnectionSettings:Pool:SlowThreshold",
        "3 ms",
        "A routine that usually needs longer than this moves to exclusive connections.",
    ),
    integer(
        "ConnectionSettings:Pool:StreamAfterBytes",
        524_288,
        "Response bytes gathered before the answer begins to stream.",
    ),
    interval(
        "ConnectionSettings:Pool:SlowClientTimeout",
        "60 seconds",
        "A client that takes no bytes of a streaming answer for this long is dropped and its query cancelled.",
    ),
    interval(
        "ConnectionSettings:Pool:ShutdownTimeout",
        "30 seconds",
        "Longest wait for running requests when the service stops.",
    ),
)
