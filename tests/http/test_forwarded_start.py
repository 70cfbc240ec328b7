"""Whose word about a client counts is never a matter of a typing error (issue 12.6)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.http.conftest import Serve

SQL = """
create function address(_ip_address text default null) returns text language sql stable as $$select _ip_address$$;
comment on function address(text) is E'HTTP GET\\nallow_anonymous\\nuser_parameters';
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
def test_what_cannot_be_read_stops_the_start(own_database: Database, serve_once: Serve, key: str, value: str) -> None:
    with pytest.raises(AssertionError, match=f"ForwardedHeaders:{key}"):
        serve_once(own_database, SQL, {**ON, f"ForwardedHeaders:{key}:0": value})


def test_empty_lists_mean_this_host(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, ON)
    assert service.get("/api/address", headers=FORGED).text == "9.9.9.9"


def test_everybody_is_believed_where_that_is_said(own_database: Database, serve_once: Serve) -> None:
    anybody = {**ON, "ForwardedHeaders:TrustAllProxies": "true", "ForwardedHeaders:KnownProxies:0": "10.0.0.5"}
    service = serve_once(own_database, SQL, anybody)
    assert service.get("/api/address", headers=FORGED).text == "9.9.9.9"
    assert "WRN" in service.wait_for_log("ForwardedHeaders:TrustAllProxies")


def test_lists_are_the_whole_truth(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {**ON, "ForwardedHeaders:KnownProxies:0": "10.0.0.5"})
    assert service.get("/api/address", headers=FORGED).text == "127.0.0.1"
