"""Options of statistics and health checks: the connection of the reports, and the rate limit of the paths."""

from __future__ import annotations

import pytest

from rowcall.core.config import Settings, assemble, load_files
from rowcall.service.options.capabilities.limits import limit_options
from rowcall.service.options.connection_string import ConnectionInfo
from rowcall.service.options.connections import Connections, connection_plan
from rowcall.service.options.from_settings import worker_options
from rowcall.service.startup_error import StartupError

POLICY = "RateLimiterOptions:Policies:slow:"
LIMITS = {"RateLimiterOptions:Enabled": "true", POLICY + "Type": "FixedWindow", POLICY + "Enabled": "true"}
SECTIONS = ("Stats", "HealthChecks", "Service:McpOptions", "Auth:PasskeyAuth", "Auth:SecondFactor", "Auth:External")


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


@pytest.mark.parametrize("section", SECTIONS)
def test_an_unknown_policy_of_reserved_paths_stops_the_start(section: str) -> None:
    values = {**LIMITS, f"{section}:Enabled": "true", f"{section}:RateLimiterPolicy": "slwo"}
    with pytest.raises(StartupError, match=f"{section}:RateLimiterPolicy names 'slwo', which is none of slow"):
        limit_options(settings_of(values))


@pytest.mark.parametrize(
    "values",
    [
        {"Stats:Enabled": "true", "Stats:RateLimiterPolicy": "slow"},
        {"Stats:Enabled": "true", "Stats:RateLimiterPolicy": "slow", POLICY + "Enabled": "false"},
        {"Stats:Enabled": "true", "Stats:RateLimiterPolicy": "slwo", "RateLimiterOptions:Enabled": "false"},
        {"Stats:Enabled": "false", "Stats:RateLimiterPolicy": "slwo"},
    ],
)
def test_other_policies_of_reserved_paths_do_not(values: dict[str, str]) -> None:
    limit_options(settings_of({**LIMITS, **values}))
