"""Security headers and cross-origin requests as a browser sees them (browsers-1 to browsers-5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.postgres import SUPERUSER
from tests.harness.service import Service
from tests.harness.upstream import Upstream, answer
from tests.http.conftest import Serve

SQL = """
create function hello() returns text language sql stable as $$ select 'hello' $$;
comment on function hello is 'HTTP GET
allow_anonymous';
create function framed() returns text language sql stable as $$ select 'framed' $$;
comment on function framed is 'HTTP GET
allow_anonymous
X-Frame-Options: SAMEORIGIN';
create function alone() returns text language sql stable as $$ select 'alone' $$;
comment on function alone is 'HTTP GET
allow_anonymous
cors off';
create function closed() returns text language sql stable as $$ select 'closed' $$;
comment on function closed is 'HTTP GET
authorize';
create function parcel(_id text) returns text language sql stable as $$ select _id $$;
comment on function parcel is 'HTTP GET /parcels/{_id}
allow_anonymous';
create function many(_n int) returns table (n int) language sql stable as $$ select generate_series(1, _n) $$;
comment on function many is 'HTTP GET
allow_anonymous';
"""
SHOP = "https://shop.example:8443"
ON = {"SecurityHeaders:Enabled": "true"}
CORS = {"Cors:Enabled": "true"}
LISTED = {
    **CORS,
    "Cors:AllowedOrigins:0": "HTTPS://Shop.example:8443/",
    "Cors:AllowedOrigins:1": "http://other.example:80",
    "Cors:AllowedMethods:0": "GET",
    "Cors:AllowedMethods:1": "POST",
    "Cors:AllowedHeaders:0": "X-Till",
    "Cors:ExposedHeaders:0": "X-Total",
    "Cors:AllowCredentials": "true",
}


@pytest.fixture(scope="module")
def listed(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {**LISTED, **ON, "SecurityHeaders:ContentSecurityPolicy": "default-src 'self'"})


@pytest.fixture(scope="module")
def open_to_all(database: Database, serve: Serve) -> Service:
    return serve(database, "", {**CORS, "Cors:AllowedOrigins:0": "*", "Cors:PreflightMaxAgeSeconds": "0"})


def cors_headers(response: httpx.Response) -> dict[str, str]:
    """Return the CORS headers, without their common prefix."""
    start = "access-control-"
    return {name.removeprefix(start): value for name, value in response.headers.items() if name.startswith(start)}


def preflight(
    service: Service, path: str, origin: str, method: str = "GET", headers: str | None = None
) -> httpx.Response:
    fields = {"Origin": origin, "Access-Control-Request-Method": method}
    if headers is not None:
        fields["Access-Control-Request-Headers"] = headers
    return service.request("OPTIONS", path, headers=fields)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/api/hello", 200), ("/api/closed", 401), ("/nowhere", 404), ("/api/%ff", 400), ("/api/many?n=100000", 200)],
)
def test_every_response_has_security_headers(listed: Service, path: str, status: int) -> None:
    response = listed.get(path)
    assert response.status_code == status
    assert {name: response.headers.get_list(name) for name in ("x-content-type-options", "x-frame-options")} == {
        "x-content-type-options": ["nosniff"],
        "x-frame-options": ["DENY"],
    }
    assert response.headers["referrer-policy"] == "strict-origin-when-cross-origin"
    assert response.headers["content-security-policy"] == "default-src 'self'"
    assert "permissions-policy" not in response.headers


@pytest.mark.parametrize("path", ["/parcels/%FF", "/parcels/a%00b"])
def test_a_malformed_path_is_refused_beside_endpoints_with_cors_off(listed: Service, path: str) -> None:
    for headers in ({}, {"Origin": SHOP}):
        problem(listed.get(path, headers=headers), 400)
    assert preflight(listed, path, SHOP).status_code == 204
    assert "outside of its steps" not in listed.log


def test_preflight_response_has_security_headers(listed: Service) -> None:
    assert preflight(listed, "/api/hello", SHOP).headers["x-frame-options"] == "DENY"


def test_comment_header_is_added_beside_the_security_header(listed: Service) -> None:
    assert listed.get("/api/framed").headers.get_list("x-frame-options") == ["DENY", "SAMEORIGIN"]


def test_null_and_empty_values_omit_a_security_header(own_database: Database, serve_once: Serve) -> None:
    settings = {**ON, "SecurityHeaders:XFrameOptions": "", "SecurityHeaders:ReferrerPolicy": ""}
    headers = serve_once(own_database, SQL, settings).get("/api/hello").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "x-frame-options" not in headers
    assert "referrer-policy" not in headers


@pytest.mark.parametrize("origin", [SHOP, "http://other.example"])
def test_listed_origin_gets_cors_headers(listed: Service, origin: str) -> None:
    response = listed.get("/api/hello", headers={"Origin": origin})
    assert response.text == "hello"
    assert cors_headers(response) == {"allow-origin": origin, "allow-credentials": "true", "expose-headers": "X-Total"}
    assert response.headers["vary"] == "Origin"


@pytest.mark.parametrize(
    "origin",
    [
        "https://shop.example",
        "http://shop.example:8443",
        "https://shop.example:8443.evil.example",
        "https://evil.shop.example:8443",
        "null",
        "",
    ],
)
def test_unlisted_origin_gets_no_cors_headers(listed: Service, origin: str) -> None:
    response = listed.get("/api/hello", headers={"Origin": origin})
    assert (response.status_code, response.text, cors_headers(response)) == (200, "hello", {})
    assert response.headers["vary"] == "Origin"


def test_request_without_origin_gets_no_cors_headers(listed: Service) -> None:
    assert cors_headers(listed.get("/api/hello")) == {}


def test_error_responses_have_cors_headers(listed: Service) -> None:
    response = listed.get("/api/closed", headers={"Origin": SHOP})
    assert (response.status_code, cors_headers(response)["allow-origin"]) == (401, SHOP)


PREFLIGHTS: list[tuple[str, str, str | None, Mapping[str, str]]] = [
    (
        SHOP,
        "POST",
        "x-till",
        {
            "allow-origin": SHOP,
            "allow-credentials": "true",
            "allow-methods": "GET,POST",
            "allow-headers": "X-Till",
            "max-age": "600",
        },
    ),
    (
        SHOP,
        "DELETE",
        None,
        {
            "allow-origin": SHOP,
            "allow-credentials": "true",
            "allow-methods": "GET,POST",
            "allow-headers": "X-Till",
            "max-age": "600",
        },
    ),
    ("https://evil.example", "POST", "x-till", {}),
    ("null", "POST", None, {}),
]


@pytest.mark.parametrize("path", ["/api/hello", "/api/closed", "/nowhere"])
@pytest.mark.parametrize(("origin", "method", "headers", "fields"), PREFLIGHTS)
def test_preflight_is_answered_before_routing_and_authorization(
    listed: Service, path: str, origin: str, method: str, headers: str | None, fields: Mapping[str, str]
) -> None:
    response = preflight(listed, path, origin, method, headers)
    assert (response.status_code, response.content, cors_headers(response)) == (204, b"", fields)
    assert "Origin" in response.headers["vary"]


def test_comment_can_disable_cors_for_an_endpoint(listed: Service) -> None:
    assert cors_headers(listed.get("/api/alone", headers={"Origin": SHOP})) == {}
    response = preflight(listed, "/api/alone", SHOP)
    assert (response.status_code, cors_headers(response)) == (204, {})


def test_preflight_is_in_the_request_log(listed: Service) -> None:
    preflight(listed, "/api/hello?preflight", SHOP)
    assert listed.wait_for_log("HTTP OPTIONS /api/hello responded 204")


def test_options_without_preflight_headers_lists_methods(listed: Service) -> None:
    response = listed.request("OPTIONS", "/api/hello")
    assert (response.status_code, response.headers["allow"]) == (204, "GET, HEAD, OPTIONS")


def test_wildcard_cors_allows_any_origin(open_to_all: Service) -> None:
    response = open_to_all.get("/api/hello", headers={"Origin": "https://anywhere.example"})
    assert cors_headers(response) == {"allow-origin": "*"}
    assert "vary" not in response.headers
    response = preflight(open_to_all, "/api/hello", "null", "PURGE", "x-one, x-two")
    assert cors_headers(response) == {"allow-origin": "*", "allow-methods": "PURGE", "allow-headers": "x-one, x-two"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"Cors:AllowedOrigins:0": "*", "Cors:AllowCredentials": "true"}, "Cors:AllowCredentials"),
        ({"Cors:AllowedOrigins:0": "shop.example"}, "'shop.example' is no origin"),
        ({"Cors:AllowedOrigins:0": "https://*.shop.example"}, "is no origin"),
        ({"Cors:AllowedOrigins:0": "https://shop.example/path"}, "is no origin"),
        ({"Cors:AllowedMethods:0": "GET POST"}, "Cors:AllowedMethods"),
    ],
)
def test_invalid_cors_policy_stops_the_start(
    own_database: Database, tmp_path: Path, settings: Mapping[str, str], words: str
) -> None:
    values = {"ConnectionStrings:Default": own_database.conninfo, **CORS, **settings}
    done = rowcall(tmp_path, *(f"--{key}={value}" for key, value in values.items()))
    assert done.returncode == 1
    assert words in done.stderr + done.stdout


def test_cors_policy_replaces_allow_origin_headers_of_upstream_responses(
    own_database: Database, serve_once: Serve, upstream: Upstream
) -> None:
    upstream.on("/other", answer("theirs", headers=[("Access-Control-Allow-Origin", "*")], content_type="text/plain"))
    sql = f"""create function other() returns void language sql as '';
        comment on function other() is E'HTTP GET /other\\nallow_anonymous\\nproxy {upstream.url}';
        create function own() returns text language sql stable as $$ select 'own' $$;
        comment on function own() is E'HTTP GET /own\\nallow_anonymous\\nAccess-Control-Allow-Origin: *';
        create table thing (id int);"""
    mount = {"PostgRest:Enabled": "true", "PostgRest:Path": "/rest", "PostgRest:AnonymousRole": SUPERUSER}
    service = serve_once(own_database, sql, {**LISTED, **mount, "Service:ProxyOptions:Enabled": "true"})
    for path in ("/other", "/own", "/rest/thing"):
        for origin, expected in ((SHOP, [SHOP]), ("https://evil.example", [])):
            response = service.get(path, headers={"Origin": origin})
            assert response.status_code == 200
            assert response.headers.get_list("access-control-allow-origin") == expected, path
