"""Replicas: one server for each host of a connection string, with its port (`ConnectionSettings:Replicas`)."""

from __future__ import annotations

import pytest
from psycopg.pq import PGconn

from rowcall.core.config import assemble, load_files
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.options.connection_string import ConnectionInfo, parse_connection_string
from rowcall.service.options.connections import Connections, connection_plan
from rowcall.service.options.server.replicas import replica_options


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host=a dbname=d", {"a": None}),
        ("host=a,b dbname=d", {"a": None, "b": None}),
        ("host=a,b port=5433 dbname=d", {"a": "5433", "b": "5433"}),
        ("postgresql://a:5433,b:5434/d", {"a": "5433", "b": "5434"}),
        ("postgresql://a:5433,b/d", {"a": "5433", "b": ""}),
        ("postgresql://a,b:5433/d", {"a": "", "b": "5433"}),
        ("Host=a:5433,b;Database=d", {"a": "5433", "b": "5432"}),
    ],
)
def test_each_host_of_a_replica_has_its_port(text: str, expected: dict[str, str | None]) -> None:
    keys = [("ConnectionStrings:Default", "host=main"), ("ConnectionStrings:Replica", text)]
    settings = assemble(load_files([]), [*keys, ("ConnectionSettings:Replicas:Enabled", "true")], {}).settings
    replica = parse_connection_string(text)
    assert isinstance(replica, ConnectionInfo)
    connections = Connections(connection_plan(settings), ConnectionInfo({"host": "main"}), {"Replica": replica})
    options = replica_options(
        settings, connections, lambda _name, info: (ConnectionTarget(info.parameters), DatabaseOptions())
    )
    assert options is not None
    parameters = [server.target.parameters for server in options.servers]
    assert {item["host"]: item.get("port") for item in parameters} == expected
    for item in parameters:
        connection = PGconn.connect_start(ConnectionInfo({**item, "hostaddr": "127.0.0.1"}).conninfo().encode())
        assert b"could not match" not in connection.error_message
        connection.finish()
