"""An endpoint or a stream on a reserved path is logged, with the key that reserves the path (routing-12)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

PATHS = {
    "HealthChecks:Path": "GET /health",
    "Stats:RoutinesStatsPath": "GET /stats/routines",
    "Auth:BearerTokenRefreshPath": "POST /renew",
    "Auth:Schemes:Short:BearerTokenRefreshPath": "POST /renew-short",
    "Auth:PasskeyAuth:LoginPath": "POST /api/passkey/login",
    "Auth:PasskeyAuth:RegistrationPath": "POST /api/passkey/register",
    "Antiforgery:TokenPath": "GET /token",
    "CacheOptions:TagsPath": "POST /forget",
    "Service:OpenApiOptions:UrlPath": "GET /openapi.json",
    "Service:McpOptions:UrlPath": "POST /mcp",
    "Service:McpOptions:ToolSchemas:LlmsTxtUrlPath": "GET /llms.txt",
}
SETTINGS = {
    "HealthChecks:Enabled": "true",
    "HealthChecks:ReadyPath": "/docs/ready",
    "HealthChecks:LivePath": "/shops/first/news",
    "Stats:Enabled": "true",
    "Auth:BearerTokenAuth": "true",
    "Auth:BearerTokenRefreshPath": "/renew",
    "Auth:Schemes:Short:Type": "BearerToken",
    "Auth:Schemes:Short:BearerTokenRefreshPath": "/renew-short",
    "Auth:PasskeyAuth:Enabled": "true",
    "Auth:PasskeyAuth:EnableRegister": "true",
    "Antiforgery:Enabled": "true",
    "Antiforgery:TokenPath": "/token",
    "CacheOptions:Enabled": "true",
    "CacheOptions:TagsPath": "/forget",
    "Service:OpenApiOptions:Enabled": "true",
    "Service:McpOptions:Enabled": "true",
    "Service:McpOptions:ToolSchemas:Enabled": "true",
}


STREAMS = """
create function docs() returns void language sql as '';
comment on function docs() is E'HTTP GET /docs\nsse_subscribe ready';
create function of_shop(_shop text) returns void language sql as '';
comment on function of_shop(text) is E'HTTP GET /shops/{_shop}\nsse_subscribe news';
create function behind() returns int language sql as 'select 1';
comment on function behind() is 'HTTP GET /shops/first/news';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    sql = STREAMS + "".join(
        f"create function at_{number}() returns int language sql as 'select 1';"
        f"comment on function at_{number}() is 'HTTP {place}';"
        for number, place in enumerate(PATHS.values())
    )
    return serve(database, sql, SETTINGS)


@pytest.mark.parametrize(("key", "place"), PATHS.items())
def test_an_endpoint_on_a_reserved_path_is_logged(service: Service, key: str, place: str) -> None:
    result = f"{place} is not reached: {key} answers there; give one of them another path"
    assert service.log.count(result) == 1


def test_a_stream_on_a_reserved_path_is_logged(service: Service) -> None:
    for result in (
        "public.docs(): HealthChecks:ReadyPath is not reached: the stream of GET /docs is at /docs/ready",
        "HealthChecks:LivePath is not reached: the stream of GET /shops/{_shop} is at /shops/first/news",
        "GET /shops/first/news is not reached: the stream of GET /shops/{_shop} is there",
    ):
        assert service.log.count(f"{result}; give one of them another path") == 1
    with service.client.stream("GET", f"{service.url}/docs/ready") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
