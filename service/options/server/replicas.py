"""Read `ConnectionSettings:Replicas`: replicas of the main database, one server for each host of their connection
strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rowcall.core.config import Settings
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.replicas.options import ReplicaOptions, ReplicaServer
from rowcall.service.options.connection_string import ConnectionInfo
from rowcall.service.options.connections import Connections

Access = Callable[[str, ConnectionInfo], tuple[ConnectionTarget, DatabaseOptions]]


def replica_options(settings: Settings, connections: Connections, access: Access) -> ReplicaOptions | None:
    """Return the options of replicas, or None if none are configured.

    access: returns the target and the options of a database by name and connection.
    """
    if not connections.plan.replicas:
        return None
    servers = tuple(
        server
        for name in connections.plan.replicas
        for server in _servers(name, *access(name, connections.others[name]))
    )
    return settings.read(ReplicaOptions, servers=servers)


def _servers(name: str, target: ConnectionTarget, database: DatabaseOptions) -> Iterator[ReplicaServer]:
    """Yield one server for each host of a connection. name: of its connection string.

    `target_session_attrs` is dropped: each server is checked repeatedly for whether it is a standby.
    """
    hosts = list(_hosts(target.parameters))
    for parameters in hosts:
        shown = name if len(hosts) == 1 else f"{name} ({parameters['host']}:{parameters.get('port') or '5432'})"
        yield ReplicaServer(shown, ConnectionTarget(parameters, target.pooler, target.timeout), database)


def _hosts(parameters: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the parameters of each host, without `target_session_attrs`. As in libpq, a single port applies to all
    hosts, and an empty port is the default.

    The parameters are yielded once, with all hosts, if `hostaddr` is set, or if there are several ports but not one for
    each host, which libpq reports when it connects.
    """
    common = {key: value for key, value in parameters.items() if key != "target_session_attrs"}
    hosts = common.get("host", "").split(",")
    ports = common.get("port", "").split(",")
    if len(hosts) == 1 or "hostaddr" in common or len(ports) not in (1, len(hosts)):
        yield common
        return
    for number, host in enumerate(hosts):
        port = {"port": ports[number % len(ports)]} if "port" in common else {}
        yield {**common, "host": host, **port}
