"""A typing error never determines which forwarded headers are trusted."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.http.conftest import Serve

SQL = """
create function address(_ip_address text default null) returns text language sql stable as $$select _ip_address$$;
comment on function address(text) is E'HTTP GET\\nallow_anonymous\\nuser_parameters';
create function sent(_headers json default null) returns json language sql stable as $$select _headers$$;
comment on function sent(json) is E'HTTP GET\\nallow_anonymous\\nrequest_headers_mode parameter';
"""

ON = {"ForwardedHeaders:Enabled": "true"}
FORGED = {"X-Forwarded-For": "9.9.9.9"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("KnownProxies", "10.0.0.5x"),
        ("KnownProxies", "proxy.example"),
        ("KnownNetworks", "10.0.0.0/33"),
        ("KnownNetworks", "{NET}"),
    ],
)
def test_invalid_forwarded_setting_stops_the_start(
    own_database: Database, serve_once: Serve, key: str, value: str
) -> None:
    with pytest.raises(AssertionError, match=f"ForwardedHeaders:{key}"):
        serve_once(own_database, SQL, {**ON, f"ForwardedHeaders:{key}:0": value})


def test_empty_proxy_lists_trust_only_this_host(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {**ON, "Ssl:Enabled": "true"})
    assert service.get("/api/address", headers=FORGED).text == "9.9.9.9"
    behind = {**FORGED, "X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.example:8443"}
    response = service.get("/api/sent", headers=behind)
    assert response.headers["strict-transport-security"] == "max-age=2592000"
    body = response.json()
    assert body["X-Original-For"].startswith("127.0.0.1:")
    assert (body["Host"], body["X-Original-Proto"]) == ("shop.example:8443", "http")
    assert body["X-Original-Host"] == f"127.0.0.1:{service.port}"
    assert not [name for name in body if name.startswith("X-Forwarded")]
    assert "X-Original-For" not in service.get("/api/sent").json()
    for sent in ({}, {"X-Forwarded-Proto": "https"}, {**behind, "X-Forwarded-Proto": "http"}):
        assert "strict-transport-security" not in service.get("/api/sent", headers=sent).headers


def test_all_proxies_are_trusted_if_configured(own_database: Database, serve_once: Serve) -> None:
    settings = {**ON, "ForwardedHeaders:TrustAllProxies": "true", "ForwardedHeaders:KnownProxies:0": "10.0.0.5"}
    service = serve_once(own_database, SQL, settings)
    assert service.get("/api/address", headers=FORGED).text == "9.9.9.9"
    assert "WRN" in service.wait_for_log("ForwardedHeaders:TrustAllProxies")


@pytest.mark.slow
def test_configured_proxy_list_replaces_the_default(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {**ON, "ForwardedHeaders:KnownProxies:0": "10.0.0.5"})
    assert service.get("/api/address", headers=FORGED).text == "127.0.0.1"
