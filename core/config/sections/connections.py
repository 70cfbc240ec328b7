"""Keys of databases: connection strings, opening of connections, connection pools, and replicas."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.sections.declaration import (
    choice,
    flag,
    integer,
    interval,
    lenient,
    numbers,
    part,
    section,
    text,
    text_map,
    texts,
)
from rowcall.core.sections.values import at_least


@section("<section>")
class ConnectionOfSection:
    """The key `ConnectionName`, to read it in any section that has it. The sections declare the key themselves, so that
    it is not declared twice."""

    name: str | None = text("ConnectionName", None, "Connection that is used. null: the main one.")


@section("")
class ConnectionStrings:
    connection_strings = text_map(
        "ConnectionStrings",
        {
            "Default": "Host={!PGHOST:localhost};Port={!PGPORT:5432};Database={!PGDATABASE};"
            "Username={!PGUSER:postgres};Password={!PGPASSWORD:postgres}"
        },
        "Named databases. A value is a URI (`postgresql://user@host/db`), libpq keywords (`host=… dbname=…`), "
        "the form `Host=…;Database=…;Username=…;Password=…`, or `embedded:PATH` for a private PostgreSQL in a "
        "folder.",
        secret=True,
    )


@section("ConnectionSettings:RetryOptions", "Further attempts to open a connection after a failure.")
class RetryOptions:
    enabled: bool = flag("Enabled", True, "Try again if a connection cannot be opened.")
    delays: tuple[float, ...] = numbers(
        "RetrySequenceSeconds",
        (1, 3, 6, 12),
        "Seconds to wait before each new attempt; their number is the number of attempts after the first.",
    )
    codes: tuple[str, ...] = texts(
        "ErrorCodes",
        ("08000", "08003", "08006", "08001", "08004", "55P03", "55006", "53300", "57P03", "40001"),
        "SQLSTATEs that lead to another attempt. Network errors always do; a wrong password never does.",
    )


@section("ConnectionSettings:MultiHostConnectionTargets", "Choice of the server for connections with several hosts.")
class MultiHostTargets:
    default: str = lenient(
        choice(
            "Default",
            "Any Primary Standby PreferPrimary PreferStandby ReadWrite ReadOnly",
            "Any",
            "Required role of the server, for connections without an entry in ByConnectionName.",
        )
    )
    by_connection: Mapping[str, str | None] = text_map(
        "ByConnectionName",
        {},
        "Required roles of servers by name of the connection.",
        choices="Any Primary Standby PreferPrimary PreferStandby ReadWrite ReadOnly",
    )


@section("ConnectionSettings:Pool", "Connection pools of each worker process.")
class PoolOptions:
    """Options of the connection pools of one worker. Times in seconds, sizes in bytes."""

    sharing: bool = flag(
        "Sharing",
        True,
        "Let many requests use one connection at the same time (pipelining). false: each running request has a "
        "connection of its own.",
    )
    pipelined_connections: int = integer(
        "SharedConnections", 2, "Connections of a worker that many fast requests share (pipelined pool)."
    )
    pipelined_depth: int = integer(
        "SharedDepth",
        16,
        "Maximum number of requests in flight on one shared connection; further ones wait in the queue.",
    )
    share_writes: bool = flag(
        "ShareWrites",
        True,
        "Let VOLATILE routines share connections too, if they are fast and have no session effects. They use a "
        "separate pool, so that reads never wait behind a lock.",
    )
    trust_stable: bool = flag(
        "TrustStable",
        False,
        "Assume that STABLE and IMMUTABLE routines have no session effects, also with dynamic SQL: they share "
        "connections without a reset. If one has session effects, they reach other requests.",
    )
    write_connections: int = integer(
        "WriteConnections",
        16,
        "Maximum number of connections of a worker that VOLATILE routines share. Opened on demand: the longer "
        "commits take, the more.",
    )
    write_depth: int = integer("WriteDepth", 4, "Maximum number of requests in flight on one of these connections.")
    dedicated_connections: int = integer(
        "ExclusiveConnections",
        16,
        "Maximum number of connections of a worker that serve one request at a time (dedicated pool): slow, "
        "streaming, writing or not yet measured routines. Opened on demand.",
    )
    queue_limit: int = integer(
        "QueueLimit",
        1000,
        "Maximum number of requests of a worker that wait for a connection. Further ones get 503 with "
        "Retry-After at once.",
    )
    queue_timeout: float = interval(
        "QueueTimeout", "5 seconds", "Longest wait for a connection; then the request gets 503 with Retry-After."
    )
    queue_target: float | None = interval(
        "QueueTarget",
        "500 ms",
        "Longest wait if the queue has not been empty for `QueueInterval`, which means overload; requests that "
        "wait longer get 503 with Retry-After. null: QueueTimeout applies then too.",
        nullable=True,
    )
    queue_interval: float = interval(
        "QueueInterval", "5 seconds", "Time after which a queue that was never empty counts as overload."
    )
    transaction_pooler: bool = flag(
        "TransactionPooler",
        False,
        "A transaction pooler (PgBouncer, Supavisor) is between the service and PostgreSQL: the session has no "
        "state, and statements are not prepared by name.",
    )
    slow: float = interval(
        "SlowThreshold", "3 ms", "A routine whose usual duration is longer moves to the dedicated pool."
    )
    stream_after: int = integer(
        "StreamAfterBytes", 524_288, "Response bytes that are collected before streaming begins."
    )
    slow_client: float = interval(
        "SlowClientTimeout",
        "60 seconds",
        "A client that reads no bytes of a streamed response for this time is disconnected; its query is cancelled.",
    )
    shutdown: float = interval(
        "ShutdownTimeout", "30 seconds", "Longest wait for running requests when the service stops."
    )
    lifetime: float = interval(
        "ConnectionLifetime",
        "30 minutes",
        "Age at which a connection is replaced, so that nothing that a routine left in its session lasts without end.",
        convert=at_least(1),
    )
    idle_timeout: float | None = interval(
        "IdleTimeout",
        None,
        "Connections of the dedicated pool that no request has used for this time are closed. null: none.",
    )
    requests: int = 1_000_000
    """Executions after which a connection is replaced."""


def _is_annotated(word: str) -> bool:
    return word == "Annotated"


def _lower_or_none(text: str | None) -> str | None:
    return None if text is None else text.lower()


@section("ConnectionSettings:Replicas", "Reading from replicas of the main database (streaming replication).")
class ReplicaKeys:
    """Options of replicas. Times in seconds."""

    enabled = flag("Enabled", False, "Run reads on replicas.")
    names: tuple[str, ...] = texts(
        "ConnectionNames",
        ("Replica*",),
        "Names of ConnectionStrings of replicas; `*` is any text. Each host of a connection string is one replica.",
    )
    only_annotated: bool = choice(
        "Reads",
        "ReadOnly Annotated",
        "ReadOnly",
        "ReadOnly: STABLE and IMMUTABLE functions, reads of tables, and files that only read. Annotated: only "
        "endpoints with `read_from replica`.",
        convert=_is_annotated,
    )
    longest_lag: float | None = interval(
        "MaxLag", "10 seconds", "A replica with more lag is not used. null: no limit.", nullable=True
    )
    wait: float = interval(
        "WaitForWrite",
        "100 ms",
        "Longest wait for a replica to receive the writes of the client; then the primary is used.",
    )
    check: float = interval(
        "CheckInterval", "500 ms", "Interval between checks of each server by a worker.", convert=at_least(0.01)
    )
    cookie: str | None = text(
        "TokenCookie",
        "rowcall-position",
        "Cookie with the position of the client's last write. null: none.",
        nullable=True,
    )
    header: str | None = text(
        "TokenHeader",
        "Read-After",
        "Header of responses with the same position, which requests send back. null: none.",
        nullable=True,
        convert=_lower_or_none,
    )
    lifetime: float = interval("TokenLifetime", "1 minute", "Lifetime of the cookie in browsers.")


@section("ConnectionSettings", "Settings of all connections.")
class ConnectionSettings:
    names_application: bool = flag(
        "SetApplicationNameInConnection", True, "Show ApplicationName as the application_name of every connection."
    )
    names_request: bool = flag(
        "UseJsonApplicationName",
        False,
        "Show `{app, uid, id}` of the request as application_name instead of ApplicationName.",
    )
    tested: bool = flag(
        "TestConnectionStrings", True, "Open every configured database once at the start; a failure prevents the start."
    )
    retries = part(RetryOptions)
    metadata_connection: str | None = text(
        "MetadataQueryConnectionName",
        None,
        "Connection from whose catalogue routines are read. null: the main connection.",
    )
    metadata_schema: str | None = text(
        "MetadataQuerySchema", None, "search_path while the catalogue is read. null: the default of the server."
    )
    targets = part(MultiHostTargets)
    pool = part(PoolOptions)
    replicas = part(ReplicaKeys)
