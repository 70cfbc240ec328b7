"""Connecting to Redis, for all parts of the service: a single server, the master that Sentinels name, or a Cluster.

The result is a client of redis-py. Each capability decides for itself what to do without one.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Any, cast

import redis.asyncio as aioredis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import ConnectionPool, SSLConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel, SentinelManagedSSLConnection
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisClusterException, RedisError, ResponseError

from rowcall.core.cache.redis_address import RedisAddress

FAILURES = (RedisError, RedisClusterException, OSError, TimeoutError, RuntimeError)
"""Errors that redis-py raises for a server that is unreachable or refuses. uvloop raises RuntimeError if the transport
was closed meanwhile.
"""

MALFORMED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""Errors that redis-py and its callers raise for a reply whose form does not fit the command."""

MASTER = frozenset(("master", "primary"))
"""Roles of a server that accepts writes."""


class ReplicaError(ConnectionError):
    """The server is a replica and accepts no writes."""


Client = Any
"""A client of redis-py. Its classes for the three kinds have no common base with these commands."""


async def open_client(address: RedisAddress, purpose: str, time_limit: float | None = None) -> Client:
    """Return a client of the first host that answers and is no replica.

    purpose: name of the connection at the server if the address has no `name`. time_limit: seconds to wait for a reply;
    None: no limit.

    Raises:
        ReplicaError: a host is a replica, and the other ones do not answer or refuse the connection.
        Errors of `FAILURES`: no host answers, or those that do refuse the connection or send a malformed reply.
    """
    failure: BaseException | None = None
    # The Sentinel client itself tries all Sentinels.
    for host in address.hosts[:1] if address.service is not None else address.hosts:
        try:
            async with asyncio.timeout(address.connect_timeout + 1):
                return await _open_client(address, host, _options(address, purpose, time_limit))
        except FAILURES as error:
            # A replica is more informative than a host that cannot be reached, so its error is reported.
            failure = failure if isinstance(failure, ReplicaError) else error
        except MALFORMED as error:
            failure = ConnectionError(f"a malformed reply: {error}")
    raise failure or ConnectionError("no host is named")


async def _open_client(address: RedisAddress, host: tuple[str, int], options: dict[str, Any]) -> Client:
    """Return the client of a host (or of the master that Sentinels name), or of its Cluster. options: as `_options`
    returns them. Raises `ReplicaError` for a replica, and the errors of redis-py.
    """
    client = _single(address, host, options) if address.service is None else await _master(address, options)
    try:
        await client.ping()
        if address.service is None:
            mode, role = await _mode_and_role(client)
            if mode == "cluster":
                await client.aclose()
                client = RedisCluster(startup_nodes=[ClusterNode(*item) for item in address.hosts], **options)
                await client.initialize()
            else:
                _check_role(host, role)
    except BaseException:
        await client.aclose()
        raise
    return client


def _check_role(host: tuple[str, int], role: str) -> None:
    """Raise `ReplicaError` if a server with this role accepts no writes. host: name and port, for the message."""
    if role not in MASTER:
        raise ReplicaError(f"{host[0]}:{host[1]} is a replica, and a master is needed")


def is_cluster(client: Client) -> bool:
    return isinstance(client, RedisCluster)


def _options(address: RedisAddress, purpose: str, time_limit: float | None) -> dict[str, Any]:
    """Return the arguments that the clients of redis-py have in common. purpose, time_limit: as for `open_client`."""
    options: dict[str, Any] = {
        "username": address.user,
        "password": address.password,
        "client_name": address.name or purpose,
        "socket_connect_timeout": address.connect_timeout,
        "socket_timeout": time_limit,
        "socket_keepalive": address.keep_alive > 0,
        **_tls(address),
    }
    if address.keep_alive > 0 and hasattr(socket, "TCP_KEEPIDLE"):
        options["socket_keepalive_options"] = {socket.TCP_KEEPIDLE: address.keep_alive}
    return options


def _tls(address: RedisAddress) -> dict[str, Any]:
    """Return the arguments of redis-py for TLS; empty if the address does not use it."""
    if not address.tls:
        return {}
    return {
        "ssl": True,
        # redis-py before 6 does not check the name in the certificate by default.
        "ssl_check_hostname": True,
        "ssl_ca_certs": address.ca_file,
        "ssl_certfile": address.certificate_file,
        "ssl_keyfile": address.key_file,
    }


def _single(address: RedisAddress, host: tuple[str, int], options: dict[str, Any]) -> Client:
    """Return a client of one server, which connects at its first command. options: as `_options` returns them."""
    # By default, redis-py would try three more times, seconds apart, before it reports that there is no answer.
    options = {**options, "retry": Retry(NoBackoff(), 1)}
    if not address.tls or address.tls_host is None:
        return aioredis.Redis(host=host[0], port=host[1], db=address.database, **options)
    named = {name: value for name, value in options.items() if name != "ssl"}
    pool = ConnectionPool(
        connection_class=_with_server_name(SSLConnection, address.tls_host),
        host=host[0],
        port=host[1],
        db=address.database,
        **named,
    )
    return aioredis.Redis.from_pool(pool)


def _with_server_name(base: type[SSLConnection], name: str) -> type[SSLConnection]:
    """Return a subclass of `base` for servers whose certificate has another name than the address (`sslHost`). name:
    that of the certificate.
    """

    class NamedConnection(base):  # type: ignore[misc, valid-type]  # mypy knows only classes as bases
        def _connection_arguments(self) -> Mapping[str, Any]:
            return {**super()._connection_arguments(), "server_hostname": name}

    return NamedConnection


async def _master(address: RedisAddress, options: dict[str, Any]) -> Client:
    """Return a client of the master. It asks the Sentinels again for each connection, so it follows a new master.
    options: as `_options` returns them. Raises the errors of redis-py.
    """
    own = {**_tls(address), "socket_connect_timeout": address.connect_timeout, "socket_timeout": 1.0}
    service = address.service or ""
    sentinel_client = _sentinel_client(address, own)
    try:
        await sentinel_client.discover_master(service)
    except (AuthenticationError, ResponseError, MasterNotFoundError):
        # Most Sentinels require no credentials, and some answer with an error to a client that sends them.
        if address.password is None:
            raise
        sentinel_client = _sentinel_client(address, {**own, "username": address.user, "password": address.password})
        await sentinel_client.discover_master(service)
    kind: dict[str, Any] = {}
    if address.tls and address.tls_host is not None:
        kind = {"connection_class": _with_server_name(SentinelManagedSSLConnection, address.tls_host)}
        options = {name: value for name, value in options.items() if name != "ssl"}
    return sentinel_client.master_for(service, db=address.database, **options, **kind)


def _sentinel_client(address: RedisAddress, own: dict[str, Any]) -> Any:
    """Return the client of the Sentinels. own: arguments of redis-py for the connections to them."""
    return cast("Any", Sentinel)(list(address.hosts), sentinel_kwargs=own)


async def _mode_and_role(client: Client) -> tuple[str, str]:
    """Return `standalone` or `cluster`, and `master`, `replica` or `slave`.

    HELLO (Redis 6) reports both, and a user needs `+@connection` for it. INFO is for older servers. If the user may
    send neither, the server is taken for a master: a replica refuses the first write.
    """
    try:
        reply = await client.execute_command("HELLO")
    except ResponseError:
        try:
            info = await client.info()
        except ResponseError:
            return "standalone", "master"
        return str(info.get("redis_mode", "standalone")), str(info.get("role", "master"))
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    fields = {_text(name): value for name, value in pairs}
    return _text(fields.get("mode", "standalone")), _text(fields.get("role", "master"))


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
