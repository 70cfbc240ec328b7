"""Forwarded headers and redirection to https, rule by rule (server-6 to server-10, browsers-11, browsers-12).

A row of headers is a text with `|` between the headers, `For` short for `X-Forwarded-For`, and so on. The routine
returns in this order: address, Host, X-Forwarded-For, -Proto, -Host, X-Original-For, -Proto, -Host.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.postgres import free_port
from tests.harness.raw_http import RawResponse
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.test_tls import settings

SQL = """
create function seen(_ip_address text default null, _headers json default null) returns text language sql stable as $$
    select concat_ws('|', coalesce(_ip_address, '-'), _headers ->> 'Host',
        coalesce(_headers ->> 'X-Forwarded-For', '-'),
        coalesce(_headers ->> 'X-Forwarded-Proto', '-'), coalesce(_headers ->> 'X-Forwarded-Host', '-'),
        regexp_replace(coalesce(_headers ->> 'X-Original-For', '-'), ':[0-9]+$', ':port'),
        coalesce(_headers ->> 'X-Original-Proto', '-'), coalesce(_headers ->> 'X-Original-Host', '-')) $$;
comment on function seen is E'HTTP GET /seen\\nallow_anonymous\\nuser_parameters\\nrequest_headers_mode parameter';
create function note(_a text) returns text language sql as $$ select _a $$;
comment on function note is E'HTTP POST /note\\nallow_anonymous';
"""
F = "ForwardedHeaders:"
TWO = {
    F + "Enabled": "true",
    F + "ForwardLimit": "2",
    F + "KnownNetworks:0": "10.0.0.0/8",
    F + "KnownNetworks:1": "::ffff:127.0.0.0/104",
    F + "KnownProxies:0": "::ffff:192.168.7.7",
    F + "AllowedHosts:0": "shop.example",
    F + "AllowedHosts:1": "*.zone.example",
    "Log:MinimalLevels:NpgsqlRest": "Debug",
    "Log:MinimalLevels:NpgsqlRestClient": "Debug",
    "Log:ConsoleMinimumLevel": "Debug",
}
PEER = "127.0.0.1:port"

WALKED = """
                                    127.0.0.1|own:1|-|-|-|-|-|-
For: 5.5.5.5, 9.9.9.9, 10.2.2.2     9.9.9.9|own:1|5.5.5.5|-|-|PEER|-|-
For: 5.5.5.5|For: 10.2.2.2          5.5.5.5|own:1|-|-|-|PEER|-|-
For: 5.5.5.5, 8.8.8.8, 9.9.9.9      9.9.9.9|own:1|5.5.5.5,8.8.8.8|-|-|PEER|-|-
For: 9.9.9.9, 192.168.7.7           9.9.9.9|own:1|-|-|-|PEER|-|-
For: 9.9.9.9:4711                   9.9.9.9|own:1|-|-|-|PEER|-|-
For: [2001:DB8::1]:80               2001:db8::1|own:1|-|-|-|PEER|-|-
For: 2001:db8::1                    2001:db8::1|own:1|-|-|-|PEER|-|-
For: ::ffff:9.9.9.9                 9.9.9.9|own:1|-|-|-|PEER|-|-
For: unknown                        127.0.0.1|own:1|unknown|-|-|-|-|-
For: _hidden|Proto: https           127.0.0.1|own:1|_hidden|https|-|-|-|-
For: unknown, 10.1.1.1|Proto: ftp   10.1.1.1|own:1|unknown|-|-|PEER|http|-
For: 9.9.9.9,                       9.9.9.9|own:1|-|-|-|PEER|-|-
For: 9.9.9.9,, 10.1.1.1 ,           9.9.9.9|own:1|-|-|-|PEER|-|-
Proto: https                        127.0.0.1|own:1|-|-|-|-|http|-
Proto: https, http, gopher          127.0.0.1|own:1|-|https|-|-|http|-
Proto: no scheme                    127.0.0.1|own:1|-|no scheme|-|-|-|-
Host: SHOP.example:8443             127.0.0.1|SHOP.example:8443|-|-|-|-|-|own:1
Host: a.b.zone.example              127.0.0.1|a.b.zone.example|-|-|-|-|-|own:1
Host: zone.example                  127.0.0.1|own:1|-|-|zone.example|-|-|-
Host: evil.example|For: 9.9.9.9     9.9.9.9|own:1|-|-|evil.example|PEER|-|-
Host: shop.example, evil.example    127.0.0.1|shop.example|-|-|-|-|-|own:1
For: 9.9.9.9|Proto: https, http     9.9.9.9|own:1|-|https|-|PEER|http|-
X-Original-For: 6.6.6.6:1           127.0.0.1|own:1|-|-|-|-|-|-
X-Original-Host: evil|For: 9.9.9.9  9.9.9.9|own:1|-|-|-|PEER|-|-
X-Real-IP: 6.6.6.6                  127.0.0.1|own:1|-|-|-|-|-|-
"""


def ask(service: Service, *fields: str, start: str = "GET /seen HTTP/1.1") -> RawResponse:
    """fields: header lines, sent unchanged after Host."""
    result = service.raw("\r\n".join([start, *fields, "", ""]).encode())
    assert result is not None
    return result


@pytest.fixture(scope="module")
def behind_proxy(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, TWO)


@pytest.mark.parametrize("row", [line for line in WALKED.splitlines() if line])
def test_forwarded_entries_are_evaluated_from_the_right(behind_proxy: Service, row: str) -> None:
    sent, expected = row[:36].strip(), row[36:]
    names = ("For", "Proto", "Host")
    fields = [f"X-Forwarded-{field}" if field.startswith(names) else field for field in sent.split("|") if field]
    result = ask(behind_proxy, "Host: own:1", *fields)
    assert (result.status, result.body.decode()) == (200, expected.replace("PEER", PEER))


def test_forwarded_header_settings_are_logged(behind_proxy: Service) -> None:
    line = behind_proxy.wait_for_log("forwarded headers: ")
    assert "DBG" in line
    assert "limit 2, proxies 1, networks 2, hosts 2" in line


def test_all_forwarded_entries_are_evaluated_without_a_limit(own_database: Database, serve_once: Serve) -> None:
    all_proxies = {F + "Enabled": "true", F + "ForwardLimit": "", F + "TrustAllProxies": "true"}
    service = serve_once(own_database, SQL, all_proxies)
    fields = ("Host: own:1", "X-Forwarded-For: 5.5.5.5, 9.9.9.9, 10.2.2.2", "X-Forwarded-Host: any.example:99")
    assert ask(service, *fields).body.decode() == f"5.5.5.5|any.example:99|-|-|-|{PEER}|-|own:1"
    assert ask(service, "Host: own:1", "X-Forwarded-Host: a b").body.decode() == "127.0.0.1|own:1|-|-|a b|-|-|-"


WRONG = [
    ("ForwardLimit", "many", "is not a whole number"),
    ("ForwardLimit", "0", "the least allowed is 1"),
    ("AllowedHosts:0", "shop.example:80", "is no host"),
    ("AllowedHosts:0", "https://shop.example", "is no host"),
    ("AllowedHosts:0", "shop.*", "is no host"),
]


@pytest.mark.parametrize(("key", "value", "message"), WRONG)
def test_unsupported_forwarding_settings_stop_the_start(
    own_database: Database, serve_once: Serve, key: str, value: str, message: str
) -> None:
    with pytest.raises(AssertionError, match=f"{F}{key.partition(':')[0]}: .*{message}"):
        serve_once(own_database, "", {F + "Enabled": "true", F + key: value})


# --- redirection to https


@pytest.fixture(scope="module")
def http_and_https(database: Database, serve: Serve, certificate: tuple[Path, Path]) -> Service:
    """Provide a service over http and https, behind proxies too."""
    port, https = free_port(), free_port()
    value = {
        "Urls": f"http://127.0.0.1:{port};https://127.0.0.1:{https}",
        "Ssl:Enabled": "true",
        F + "Enabled": "true",
        "SecurityHeaders:Enabled": "true",
        "HealthChecks:Enabled": "true",
    }
    service = serve(database, "", {**settings(*certificate), **value}, 1, port)
    service.https = https
    return service


SENT_ON = [
    ("GET /seen?a=b%20c&d=%2F", "shop.example", "shop.example:PORT/seen?a=b%20c&d=%2F"),
    ("GET /nowhere", "shop.example:80", "shop.example:PORT/nowhere"),
    ("HEAD /seen", "shop.example", "shop.example:PORT/seen"),
    ("DELETE /note", "shop.example", "shop.example:PORT/note"),
    ("GET /health", "127.0.0.1:8080", "127.0.0.1:PORT/health"),
    ("GET /", "[::1]:8080", "[::1]:PORT/"),
    ("GET //evil.example/x", "shop.example", "shop.example:PORT//evil.example/x"),
    ("GET /%C3%BC%25%20x", "shop.example", "shop.example:PORT/%C3%BC%25%20x"),
]


@pytest.mark.parametrize(("start", "host", "location"), SENT_ON)
def test_http_is_redirected_to_https(http_and_https: Service, start: str, host: str, location: str) -> None:
    result = ask(http_and_https, f"Host: {host}", start=f"{start} HTTP/1.1")
    assert (result.status, result.headers["location"]) == (
        307,
        "https://" + location.replace("PORT", str(http_and_https.https)),
    )
    assert result.body == b""
    assert result.headers["x-content-type-options"] == "nosniff"
    assert "strict-transport-security" not in result.headers


STRICT = [
    ("shop.example", "https", True),
    ("shop.example:8443", "https", True),
    ("127.0.0.2", "https", True),
    ("localhost", "https", False),
    ("LocalHost:99", "https", False),
    ("127.0.0.1", "https", False),
    ("[::1]", "https", False),
    ("[::1]:99", "https", False),
]


@pytest.mark.parametrize(("host", "scheme", "strict"), STRICT)
@pytest.mark.parametrize("path", ["/seen", "/nowhere"])
def test_hsts_header_is_sent_for_https_requests(
    http_and_https: Service, path: str, host: str, scheme: str, strict: bool
) -> None:
    result = ask(http_and_https, f"Host: {host}", f"X-Forwarded-Proto: {scheme}", start=f"GET {path} HTTP/1.1")
    assert result.headers.get("strict-transport-security") == ("max-age=2592000" if strict else None)


@pytest.mark.parametrize(("host", "scheme", "strict"), STRICT)
def test_hsts_header_is_sent_over_tls(
    http_and_https: Service, tls: httpx.Client, host: str, scheme: str, strict: bool
) -> None:
    response = tls.get(f"https://127.0.0.1:{http_and_https.https}/nowhere", headers={"Host": host})
    assert response.headers.get("strict-transport-security") == ("max-age=2592000" if strict else None)


def test_forwarded_http_scheme_over_tls_is_redirected(http_and_https: Service, tls: httpx.Client) -> None:
    result = {"Host": "shop.example", "X-Forwarded-Proto": "http"}
    response = tls.get(f"https://127.0.0.1:{http_and_https.https}/seen", headers=result)
    assert (response.status_code, response.headers["location"]) == (
        307,
        f"https://shop.example:{http_and_https.https}/seen",
    )
    assert "strict-transport-security" not in response.headers


@pytest.fixture(scope="module")
def tls(certificate: tuple[Path, Path]) -> Iterator[httpx.Client]:
    context = ssl.create_default_context(cafile=str(certificate[0]))
    with httpx.Client(verify=context, trust_env=False, timeout=30) as client:
        yield client


@pytest.mark.parametrize(("port", "shown"), [("443", ""), ("8443", ":8443")])
def test_redirect_uses_the_https_port_of_a_proxy(
    own_database: Database, serve_once: Serve, port: str, shown: str
) -> None:
    value = {"Ssl:Enabled": "true", "Ssl:HttpsPort": port, F + "Enabled": "true"}
    service = serve_once(own_database, SQL, value)
    result = ask(service, "Host: inside:5000", "X-Forwarded-Proto: http", "X-Forwarded-Host: shop.example")
    assert (result.status, result.headers["location"]) == (307, f"https://shop.example{shown}/seen")
    assert ask(service, "Host: inside:5000", "X-Forwarded-Proto: https").status == 200
    assert "Ssl:UseHttpsRedirection" not in service.log


def test_without_a_known_port_no_request_is_redirected(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {"Ssl:Enabled": "true"}, 2)
    assert ask(service, "Host: shop.example").status == 200
    assert len([line for line in service.log.splitlines() if "Ssl:UseHttpsRedirection does nothing" in line]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["Ssl:Enabled", "Ssl:UseHttpsRedirection", "Ssl:UseHsts"])
def test_redirection_and_hsts_are_switched_independently(
    own_database: Database, serve_once: Serve, switch: str
) -> None:
    value = {"Ssl:Enabled": "true", "Ssl:HttpsPort": "443", F + "Enabled": "true", switch: "false"}
    service = serve_once(own_database, SQL, value)
    assert ask(service, "Host: shop.example").status == (307 if switch == "Ssl:UseHsts" else 200)
    over = ask(service, "Host: shop.example", "X-Forwarded-Proto: https")
    assert ("strict-transport-security" in over.headers) == (switch == "Ssl:UseHttpsRedirection")


# --- effects

EFFECTS = """
create function limited() returns int language sql stable as $$ select 1 $$;
comment on function limited() is E'HTTP GET /limited\\nallow_anonymous\\nrate_limiter by_address';
create function sign_in() returns table (user_id int) language sql stable as $$ select 41 $$;
comment on function sign_in() is E'HTTP POST /sign-in\\nlogin';
create function weighed() returns int language sql stable as $$ select 7 $$;
comment on function weighed() is E'HTTP GET /weighed\\nallow_anonymous\\nbasic_auth scale secret';
create function passkey_challenge_authentication(_name text, _body json)
    returns table (status int, challenge text, challenge_id int, allow_credentials text) language sql as
    $$ select 200, 'Y2hhbGxlbmdl', 1, null $$;
"""
POLICY = "RateLimiterOptions:Policies:by_address:"
AFFECTED = {
    F + "Enabled": "true",
    "Auth:CookieAuth": "true",
    "Auth:PasskeyAuth:Enabled": "true",
    "Service:AuthenticationOptions:BasicAuth:UseDefaultPasswordHasher": "false",
    "RateLimiterOptions:Enabled": "true",
    POLICY + "Type": "FixedWindow",
    POLICY + "Enabled": "true",
    POLICY + "PermitLimit": "1",
    POLICY + "WindowSeconds": "3600",
    POLICY + "QueueLimit": "0",
    POLICY + "Partition:Sources:0:Type": "IpAddress",
}


@pytest.mark.slow
def test_limits_cookies_and_sign_in_use_forwarded_values(own_database: Database, serve_once: Serve) -> None:
    """Limits, cookies, Basic and passkeys use the client and not the proxy."""
    service = serve_once(own_database, SQL + EFFECTS, AFFECTED)
    host = "Host: inside:5000"
    limited = [
        ask(service, host, f"X-Forwarded-For: {address}", start="GET /limited HTTP/1.1").status
        for address in ("1.1.1.1", "1.1.1.1:99", "6.6.6.6, 1.1.1.1", "2.2.2.2")
    ]
    assert limited == [200, 429, 429, 200]
    https = (host, "X-Forwarded-Proto: https", "X-Forwarded-Host: shop.example:8443")
    for fields, secure in ((https, True), ((host,), False)):
        cookie = ask(service, *fields, "Content-Length: 0", start="POST /sign-in HTTP/1.1").headers["set-cookie"]
        assert ("; secure" in cookie) == secure
        basic = ask(service, *fields, "Authorization: Basic c2NhbGU6c2VjcmV0", start="GET /weighed HTTP/1.1")
        assert basic.status == (200 if secure else 401)
    result = ask(service, *https, "Content-Length: 0", start="POST /api/passkey/login/options HTTP/1.1")
    assert (result.status, b'"rpId":"shop.example"' in result.body) == (200, True), result.body
