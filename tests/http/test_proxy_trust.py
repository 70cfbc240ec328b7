"""Requests of a reverse proxy have no credentials of this service, no claims about the client and no dot segments; its
responses are compressed."""

from __future__ import annotations

import gzip
import socket

import h2.config
import h2.connection
import h2.events
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer, echo
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME

ON = {
    **EVERY_SCHEME,
    "Service:ProxyOptions:Enabled": "true",
    "Service:HttpClientOptions:Enabled": "true",
    "Auth:ApiKey:Enabled": "true",
    "Auth:ApiKey:Command": "select * from find_key($1)",
    "ResponseCompression:Enabled": "true",
}


def schema(url: str) -> str:
    return f"""
create function find_key(_digest text) returns table (user_id int) language sql as 'select 7';
create function through() returns void language sql as '';
comment on function through() is 'HTTP GET /through
proxy {url}';
create function basic() returns void language sql as '';
comment on function basic() is 'HTTP GET /basic
basic_auth kiri open
proxy {url}';
create function item(_id text) returns void language sql as '';
comment on function item(text) is 'HTTP GET /items/{{_id}}
proxy {url}';
create function sent(_id text) returns text language sql as $$ select _id $$;
comment on function sent(text) is 'HTTP GET /sent/{{_id}}
proxy_out POST {url}';
create type asked as (status_code int, body text);
comment on type asked is 'GET {url}/v1/{{_id}}';
create function typed(_id text, _r asked) returns int language sql as $$ select (_r).status_code $$;
comment on function typed is 'HTTP GET /typed';
"""


@pytest.fixture(scope="module")
def echoing(upstream: Upstream) -> Upstream:
    """Provide an HTTP server that returns each request."""
    upstream.on("*", echo)
    return upstream


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, echoing: Upstream) -> Service:
    return serve(database, schema(echoing.url), ON)


SENT = {
    "Cookie": ".AspNetCore.Cookies=secret; theme=dark",
    "Authorization": "Bearer secret",
    "X-Api-Key": "secret",
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Prefix": "/x",
    "X_Forwarded_For": "203.0.113.9",
    "X-Forwarded_Host": "203.0.113.9",
    "X_Real.IP": "203.0.113.9",
    "Forwarded": "for=203.0.113.9",
    "X-Real-IP": "203.0.113.9",
    "Client-Cert": ":MIIB:",
    "Client-Cert-Chain": ":MIIB:",
    "Client_Cert": ":MIIB:",
    "Client-Certainty": "1",
    "X-Plain": "1",
}


def test_credentials_and_forwarding_headers_of_the_client_are_not_forwarded(service: Service) -> None:
    received = service.get("/through", headers=SENT).json()["headers"]
    assert "secret" not in str(received)
    assert "203.0.113.9" not in str(received)
    host = f"127.0.0.1:{service.port}"
    expected = {
        "cookie": "theme=dark",
        "x-plain": "1",
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-proto": "http",
        "x-forwarded-host": host,
        "forwarded": f'for=127.0.0.1;host="{host}";proto=http',
    }
    assert {name: received.get(name) for name in expected} == expected
    assert not {"authorization", "x-api-key", "x-forwarded-prefix", "x-real-ip"} & set(received)
    assert [name for name in received if name.startswith("client")] == ["client-certainty"]


def test_credentials_of_unknown_schemes_are_forwarded(service: Service) -> None:
    assert service.get("/through", headers={"Authorization": "Digest a=b"}).json()["headers"]["authorization"] == (
        "Digest a=b"
    )


def test_settings_forward_credentials_and_omit_forwarding_headers(
    own_database: Database, serve_once: Serve, echoing: Upstream
) -> None:
    settings = {
        **ON,
        "Service:ProxyOptions:ForwardCredentials": "true",
        "Service:ProxyOptions:SendForwardedHeaders": "false",
    }
    service = serve_once(own_database, schema(echoing.url), settings)
    received = service.get("/through", headers=SENT).json()["headers"]
    assert received["cookie"] == SENT["Cookie"]
    assert (received["authorization"], received["x-api-key"]) == ("Bearer secret", "secret")
    assert not [name for name in received if "forwarded" in name]


DOTS = ("%2e%2e", "..", "%2E%2e", ".", "%2e", "..%5cx", "..;a=b")


@pytest.mark.parametrize("path", ["/items/", "/sent/", "/typed?id=", "/typed?id=a/"])
@pytest.mark.parametrize("value", DOTS)
def test_dot_segments_are_refused(service: Service, upstream: Upstream, path: str, value: str) -> None:
    before = len(upstream.seen)
    response = service.raw(f"GET {path}{value} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert response is not None
    assert response.status == 400
    assert len(upstream.seen) == before


def test_dots_within_names_are_not_dot_segments(service: Service, upstream: Upstream) -> None:
    assert service.get("/items/a..b.txt").json()["target"] == "/items/a..b.txt"
    assert service.get("/typed?id=...").text == "200"
    assert upstream.seen[-1].target == "/v1/..."


def http2_status(service: Service, headers: list[tuple[str, str]]) -> str:
    """Of the response to a request over HTTP/2, whose header list is sent as it is."""
    config = h2.config.H2Configuration(validate_outbound_headers=False, normalize_outbound_headers=False)
    state = h2.connection.H2Connection(config)
    state.initiate_connection()
    state.send_headers(1, headers, end_stream=True)
    with socket.create_connection(("127.0.0.1", service.port), 30) as connection:
        connection.sendall(state.data_to_send())
        while data := connection.recv(65_536):
            for event in state.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    return next(_text(value) for name, value in event.headers if _text(name) == ":status")
                if isinstance(event, h2.events.StreamReset):
                    return "reset"
    return "closed"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize(
    ("named", "status"),
    [
        ([(":authority", "a.example")], "200"),
        ([("host", "a.example")], "200"),
        ([(":authority", "a.example"), ("host", "A.example")], "200"),
        ([(":authority", "a.example"), ("host", "b.example")], "400"),
        ([], "400"),
    ],
)
def test_http2_needs_an_authority_or_a_host(service: Service, named: list[tuple[str, str]], status: str) -> None:
    pseudo = [(":method", "GET"), (":scheme", "http"), (":path", "/through")]
    authority = [field for field in named if field[0].startswith(":")]
    others = [field for field in named if not field[0].startswith(":")]
    assert http2_status(service, [*pseudo, *authority, *others]) == status


LONG = b"compress me " * 20_000


def large(headers: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n%b\r\n%b" % (len(LONG), headers, LONG)


@pytest.mark.parametrize(
    ("headers", "coding", "vary"),
    [
        ({}, "gzip", ["Accept-Encoding"]),
        ({"Vary": "Accept-Encoding"}, "gzip", ["Accept-Encoding"]),
        ({"Vary": "Origin"}, "gzip", ["Origin", "Accept-Encoding"]),
        ({"Vary": "*"}, "gzip", ["*"]),
        ({"Cache-Control": "max-age=1, no-transform"}, None, []),
        ({"Content-Digest": "sha-256=:AAAA:"}, None, []),
        ({"Content-MD5": "AAAA"}, None, []),
    ],
)
def test_responses_of_proxies_are_compressed_only_where_permitted(
    service: Service, upstream: Upstream, headers: dict[str, str], coding: str | None, vary: list[str]
) -> None:
    upstream.on("/through", answer("x" * 1000, headers=headers.items(), content_type="text/plain"))
    small = service.get("/through", headers={"Accept-Encoding": "gzip"})
    upstream.on("/through", large("".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()))
    streamed = service.get("/through", headers={"Accept-Encoding": "gzip"})
    upstream.on("/through", echo)
    for response, body in ((small, b"x" * 1000), (streamed, LONG)):
        assert response.content == body
        assert response.headers.get("content-encoding") == coding
        assert response.headers.get_list("vary") == vary


def test_compressed_responses_are_passed_through(service: Service, upstream: Upstream) -> None:
    def packed(_seen: Seen, _connection: socket.socket) -> bytes:
        coded = [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
        return answer(gzip.compress(LONG), headers=coded, content_type="text/plain")

    upstream.on("/through", packed)
    response = service.get("/through", headers={"Accept-Encoding": "gzip"})
    upstream.on("/through", echo)
    assert response.content == LONG
    assert response.headers.get_list("vary") == ["Accept-Encoding"]
