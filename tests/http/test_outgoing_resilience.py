"""Outgoing requests and uploads under faults: circuit breakers, timeouts, traces, interrupted uploads."""

from __future__ import annotations

import re
import socket
import threading
import time

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer, echo
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve


def schema(url: str) -> str:
    return f"""
create function through() returns void language sql as '';
comment on function through() is 'HTTP GET /through
proxy {url}';
create function other() returns void language sql as '';
comment on function other() is 'HTTP GET /echo
proxy {url}';
create type asked as (status_code int, error_message text, body text);
comment on type asked is 'GET {url}/echo';
create function ask(_r asked) returns text language sql as
$$ select concat_ws('|', (_r).status_code, (_r).error_message) $$;
comment on function ask is 'HTTP GET /ask';
create function trace(_r asked) returns text language sql as $$ select (_r).body $$;
comment on function trace is 'HTTP GET /trace';
create function filed(_proxy_body json, _meta json) returns text language sql as
$$ select concat_ws('|', _proxy_body ->> 'body', _meta -> 0 ->> 'fileName') $$;
comment on function filed is 'HTTP POST /filed
upload for large_object
param _meta is upload metadata
proxy {url}';
create function summed(_proxy_body json, _a int default 1) returns text language sql as
$$ select _proxy_body ->> 'body' $$;
comment on function summed(json, int) is 'HTTP POST /summed
request_param_type query_string
proxy {url}';
create function passed() returns void language sql as '';
comment on function passed() is 'HTTP POST /passed
upload
proxy {url}';
"""


ON = {
    "Service:ProxyOptions:Enabled": "true",
    "Service:HttpClientOptions:Enabled": "true",
    "Service:UploadOptions:Enabled": "true",
    "HttpServer:ServerTiming": "true",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream) -> Service:
    upstream.on("*", echo)
    return serve(database, schema(upstream.url), ON)


def test_server_timing_includes_outgoing_requests(service: Service) -> None:
    assert re.search(r"\bupstream;dur=\d", service.get("/echo").headers["server-timing"])
    assert re.search(r"\bcalls;dur=\d", ", ".join(service.get("/ask").headers.get_list("server-timing")))


def test_an_http_type_forwards_the_trace(service: Service) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert f'"traceparent": "{trace}"' in service.get("/trace", headers={"traceparent": trace}).text


def test_uploaded_files_are_not_forwarded_by_default(service: Service) -> None:
    response = service.post("/filed", files={"file": ("a.txt", b"content", "text/plain")})
    assert response.text == "|a.txt"


def test_uploaded_files_are_forwarded_if_configured(
    own_database: Database, serve_once: Serve, upstream: Upstream
) -> None:
    forwarding = {**ON, "Service:ProxyOptions:ForwardUploadContent": "true"}
    service = serve_once(own_database, schema(upstream.url), forwarding)
    response = service.post("/filed", files={"file": ("a.txt", b"content", "text/plain")})
    assert "content" in response.text
    assert not response.text.endswith("|a.txt")
    received = upstream.to("/filed")[-1]
    boundary = re.fullmatch(r"multipart/form-data; boundary=(.+)", received.header("content-type") or "")
    assert boundary is not None
    assert received.body.startswith(b"--" + boundary[1].encode())
    assert "content" in service.post("/passed", files={"file": ("b.txt", b"content")}).json()["body"]


@pytest.mark.slow
def test_the_circuit_breaker_stops_requests_of_all_workers_to_a_failing_server(
    own_database: Database, serve_once: Serve
) -> None:
    server = Upstream()
    failing = [True]

    def react(request: Seen, connection: socket.socket) -> bytes:
        return answer({}, 503) if failing[0] else echo(request, connection)

    server.on("*", react)
    server.on("/echo", react)
    breaking = {
        **ON,
        "Service:HttpClientOptions:CircuitBreakerFailures": "3",
        "Service:HttpClientOptions:CircuitBreakerDuration": "1s",
    }
    try:
        service = serve_once(own_database, schema(server.url), breaking, workers=2)
        assert [service.get("/through").status_code for _ in range(3)] == [503] * 3
        requested = len(server.seen)
        for _ in range(6):
            refused = service.get("/through")
            assert "keeps failing" in problem(refused, 503)["detail"]
            assert refused.headers["retry-after"] == "1"
        assert "keeps failing" in service.get("/ask").text
        assert len(server.seen) == requested
        failing[0] = False
        wait_until(lambda: service.get("/through").status_code == 200, "the server is asked again")
        assert [service.get("/through").status_code for _ in range(6)] == [200] * 6
    finally:
        server.close()


def test_a_proxied_request_whose_body_is_too_slow_is_ended(own_database: Database, serve_once: Serve) -> None:
    """It is sent on as it comes, so that the other service would wait for it as well."""
    server = Upstream()
    limits = "HttpServer:Limits:MinRequestBodyDataRate"
    service = serve_once(own_database, schema(server.url), {**ON, limits: "5000", limits + "GracePeriod": "200ms"})
    with service.connect() as connection:
        connection.sendall(b"POST /passed HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        connection.settimeout(0.05)
        answered = b""
        for _ in range(400):
            try:
                answered = connection.recv(4096)
                break
            except TimeoutError:
                connection.sendall(b"x" * 10)
    assert answered.startswith(b"HTTP/1.1 408 ")
    assert b"the body arrives too slowly" in answered
    wait_until(lambda: server.open_connections == 0, "the other service is not kept waiting")
    server.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "size"), [("/summed", 20), ("/summed", 100_000), ("/passed", 20), ("/passed", 100_000)]
)
def test_a_slow_client_does_not_trip_the_circuit_breaker(
    own_database: Database, serve_once: Serve, path: str, size: int
) -> None:
    server = Upstream()
    server.on("*", echo)
    settings = {
        **ON,
        "Service:ProxyOptions:DefaultTimeout": "300 milliseconds",
        "Service:HttpClientOptions:CircuitBreakerFailures": "1",
    }
    service = serve_once(own_database, schema(server.url), settings)
    with service.connect() as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n"
        connection.sendall(head.encode() + b"x" * (size // 2))
        time.sleep(1)
        connection.sendall(b"x" * (size // 2))
        response = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert response.startswith(b"HTTP/1.1 200 ")
    assert response.count(b"x" * size) == 1
    server.close()


def test_a_response_may_begin_before_the_body_is_sent(own_database: Database, serve_once: Serve) -> None:
    began = threading.Event()

    def respond(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as stream:
            while stream.readline() != b"\r\n":
                pass
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
            time.sleep(0.1)
            began.set()
            connection.sendall(b"ok" if len(stream.read(100_000)) == 100_000 else b"no")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=respond, args=(listener,), daemon=True).start()
        service = serve_once(own_database, schema(f"http://127.0.0.1:{listener.getsockname()[1]}"), ON)
        with service.connect() as connection:
            head = b"POST /passed HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n"
            connection.sendall(head + b"x" * 10)
            assert began.wait(5)
            connection.sendall(b"x" * 99_990)
            response = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert response.startswith(b"HTTP/1.1 200 ")
    assert response.endswith(b"\r\n\r\nok")
