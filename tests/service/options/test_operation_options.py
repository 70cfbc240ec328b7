"""Options of statistics: the connection of the reports."""

from __future__ import annotations

import pytest

from rowcall.core.config import Settings, assemble, load_files
from rowcall.service.options.connection_string import ConnectionInfo
from rowcall.service.options.connections import Connections, connection_plan
from rowcall.service.options.from_settings import worker_options


def settings_of(values: dict[str, str]) -> Settings:
    return assemble(load_files([]), tuple(values.items()), {}).settings


@pytest.mark.parametrize("multiple", ["true", "false"])
def test_statistics_connect_as_endpoints_on_the_same_connection(multiple: str) -> None:
    values = {
        "ConnectionStrings:Default": "host=main",
        "ConnectionStrings:Reports": "host=a,b",
        "ConnectionSettings:MultiHostConnectionTargets:ByConnectionName:Reports": "ReadWrite",
        "ConnectionSettings:Pool:TransactionPooler": "true",
        "Service:UseMultipleConnections": multiple,
        "Stats:Enabled": "true",
        "Stats:ConnectionName": "reports",
    }
    settings = settings_of(values)
    reports = ConnectionInfo({"host": "a,b"}, command_timeout=5)
    connections = Connections(connection_plan(settings), ConnectionInfo({"host": "main"}), {"Reports": reports})
    options = worker_options(settings, connections)
    assert options.statistics is not None
    target = options.statistics.target
    assert target == options.others["reports"].target
    assert (target.parameters["target_session_attrs"], target.pooler, target.timeout) == ("read-write", True, 5)
