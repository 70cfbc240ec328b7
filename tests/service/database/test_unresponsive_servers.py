"""A connection to a server that does not respond is closed without a cancel request."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.database.replicas.monitoring_connection import MonitoringConnection
from tests.harness.database import Database
from tests.harness.tcp_proxy import TcpProxy


@pytest.mark.slow
def test_a_silent_server_gets_no_cancel_request(database: Database) -> None:
    """A cancel would be a connection of its own, and would wait for the same server."""
    parameters = {name: str(value) for name, value in conninfo_to_dict(database.conninfo).items()}
    proxy = TcpProxy(int(parameters["port"]))

    async def ask() -> None:
        asking = MonitoringConnection(
            Connector(ConnectionTarget({**parameters, "host": "127.0.0.1", "port": str(proxy.port)}))
        )
        assert await asking.ask("select 1") == (1,)
        proxy.delay = 3600.0
        with pytest.raises(psycopg.OperationalError, match="no answer within 2 s"):
            await asking.ask("select 2")
        assert proxy.connections == 1
        proxy.delay = 0.0
        assert await asking.ask("select 3") == (3,)
        asking.close()

    try:
        asyncio.run(ask())
    finally:
        proxy.close()
