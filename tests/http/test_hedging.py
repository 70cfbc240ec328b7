"""Hedged requests, pauses that other services request, and servers that require client certificates."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.routines import routines
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

ON = {"Service:HttpClientOptions:Enabled": "true", "Service:ProxyOptions:Enabled": "true"}


def _type(name: str, comment: str) -> str:
    fields = "body text, status_code int, error_message text"
    return f"create type {name} as ({fields}); comment on type {name} is '{comment}';"


def _caller(name: str) -> tuple[str, str, str]:
    status = "select concat_ws('|', (_r).status_code, (_r).body, (_r).error_message)"
    return (f"{name}(_r {name}_type) returns text stable", status, f"HTTP GET /{name}")


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream) -> Service:
    url = upstream.url
    types = [
        _type("slow_type", f"hedge 50ms\nGET {url}/slow"),
        _type("broken_type", f"hedge 50ms\nGET {url}/broken"),
        _type("quick_type", f"hedge 30s\nGET {url}/quick"),
        _type("post_type", f"hedge 50ms\nPOST {url}/post"),
        _type("busy_type", f"retry_delay 1ms\nGET {url}/busy"),
        _type("tired_type", f"retry_delay 1ms, 1ms\nGET {url}/tired"),
    ]
    callers = routines(_caller(name) for name in ("slow", "broken", "quick", "post", "busy", "tired"))
    return serve(database, "".join(types) + callers, ON)


def test_hedged_request_provides_the_response(service: Service, upstream: Upstream) -> None:
    numbers = iter(range(1, 10))

    def slow(_seen: Seen, connection: socket.socket) -> bytes | None:
        if next(numbers) == 1:
            connection.recv(1)  # until it is given up
            return None
        return answer("second", content_type="text/plain")

    upstream.on("/slow", slow)
    assert service.get("/slow").text == "200|second"
    assert len(upstream.to("/slow")) == 2
    wait_until(lambda: upstream.open_connections <= 1, "the first one is given up")


def test_first_response_is_used_if_the_hedged_request_fails(service: Service, upstream: Upstream) -> None:
    numbers = iter(range(1, 10))
    broken = threading.Event()

    def react(_seen: Seen, _connection: socket.socket) -> bytes | None:
        if next(numbers) == 1:
            assert broken.wait(30)
            return answer("first", 404, content_type="text/plain")
        broken.set()
        return None

    upstream.on("/broken", react)
    assert service.get("/broken").text == "404|first"
    assert len(upstream.to("/broken")) == 2


def test_timely_response_is_requested_once(service: Service, upstream: Upstream) -> None:
    upstream.on("/quick", answer("once", content_type="text/plain"))
    assert service.get("/quick").text == "200|once"
    assert len(upstream.to("/quick")) == 1


def test_unsafe_request_is_not_hedged(service: Service, upstream: Upstream) -> None:
    """The start logs that."""
    upstream.on("/post", answer("posted", content_type="text/plain"))
    assert service.get("/post").text == "200|posted"
    assert len(upstream.to("/post")) == 1
    assert "POST is not hedged" in service.log


@pytest.mark.slow
def test_retry_after_of_the_upstream_is_respected(service: Service, upstream: Upstream) -> None:
    numbers = iter(range(1, 10))

    def busy(_seen: Seen, _connection: socket.socket) -> bytes:
        if next(numbers) == 1:
            return answer({}, 503, [("Retry-After", "1")])
        return answer("free", content_type="text/plain")

    upstream.on("/busy", busy)
    assert service.get("/busy").text == "200|free"
    service.wait_for_log("again in 1 s")
    upstream.on("/tired", answer({}, 429, [("Retry-After", "3600")]))
    assert service.get("/tired").text.startswith("429|")
    assert len(upstream.to("/tired")) == 1


# --- servers that require a certificate -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a folder with an authority (`ca.pem`) and certificates that it signed: `server.pem`, `client.pem`, with
    keys."""
    folder = tmp_path_factory.mktemp("authority")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "rsa:2048", "-nodes")
    openssl(*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl(*new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
    return folder


@pytest.fixture(scope="module")
def certificate_requiring_server(authority: Path) -> Iterator[Upstream]:
    """Provide a server that requires a certificate of that authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    context.load_verify_locations(authority / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server = Upstream(context)
    yield server
    server.close()


@pytest.mark.parametrize(("shown", "status"), [(True, 200), (False, 502)])
def test_client_certificate_is_sent_if_requested(
    own_database: Database,
    serve_once: Serve,
    authority: Path,
    certificate_requiring_server: Upstream,
    shown: bool,
    status: int,
) -> None:
    client = "Service:HttpClientOptions:"
    settings = {**ON, client + "CaFile": str(authority / "ca.pem")}
    if shown:
        settings[client + "ClientCertificate"] = str(authority / "client.pem")
        settings[client + "ClientCertificateKey"] = str(authority / "client.key")
    sql = routines([("passed() returns void", "", f"HTTP GET /echo\nproxy {certificate_requiring_server.url}")])
    assert serve_once(own_database, sql, settings).get("/echo").status_code == status


@pytest.mark.parametrize(
    ("allowed", "offered"),
    [({"AllowedNetworks": ["127.0.0.0/8"]}, False), ({"AllowedHosts": ["127.0.0.1"]}, True)],
)
def test_client_certificate_is_for_named_hosts_only(
    own_database: Database,
    serve_once: Serve,
    authority: Path,
    certificate_requiring_server: Upstream,
    allowed: dict[str, list[str]],
    offered: bool,
) -> None:
    """The host comes from a value of the request, or from a redirect."""
    client = "Service:HttpClientOptions:"
    settings = {**ON, client + "CaFile": str(authority / "ca.pem")}
    settings[client + "ClientCertificate"] = str(authority / "client.pem")
    settings[client + "ClientCertificateKey"] = str(authority / "client.key")
    settings |= {f"{client}{key}:{index}": item for key, items in allowed.items() for index, item in enumerate(items)}
    port = certificate_requiring_server.url.rpartition(":")[2]
    redirecting = Upstream()
    redirecting.on("/away", answer("", 307, [("Location", f"{certificate_requiring_server.url}/found")]))
    certificate_requiring_server.on("/found", answer("found", content_type="text/plain"))
    types = _type("valued_type", f"GET https://{{_host}}:{port}/found")
    types += _type("moved_type", f"GET {redirecting.url}/away")
    select = "select concat_ws('|', (_r).status_code, (_r).body, (_r).error_message)"
    valued = ("valued(_host text, _r valued_type) returns text stable", select, "HTTP GET /valued")
    service = serve_once(own_database, types + routines([valued, _caller("moved")]), settings)
    for path in ("/valued?host=127.0.0.1", "/moved"):
        text = service.get(path).text
        assert text == "200|found" if offered else "TLS" in text or "connection" in text, text
    redirecting.close()


# --- proxies ----------------------------------------------------------------------------------------------------------

PASSED = routines([
    ("late() returns void", "", "HTTP GET /late\nproxy\nhedge 50ms"),
    ("put_late() returns void", "", "HTTP PUT /put-late\nproxy\nhedge 50ms"),
    ("post_late() returns void", "", "HTTP POST /post-late\nproxy\nhedge 50ms"),
    ("prompt() returns void", "", "HTTP GET /prompt\nproxy\nhedge = 30s"),
    ("reported(_proxy_body text) returns text", "select _proxy_body", "HTTP GET /reported\nproxy\nhedge 50ms"),
    ("alone() returns int", "select 1", "HTTP GET /alone\nhedge 50ms"),
])  # fmt: skip


class Second:
    """Does not respond to the first request until it is given up, and responds to the others."""

    def __init__(self) -> None:
        self.given_up = threading.Event()
        self._numbers = iter(range(1, 100))

    def __call__(self, request: Seen, connection: socket.socket) -> bytes | None:
        if next(self._numbers) == 1:
            connection.recv(1)
            self.given_up.set()
            return None
        return answer(b"second " + request.body, content_type="text/plain")


@pytest.fixture(scope="module")
def proxy(database: Database, serve: Serve, upstream: Upstream) -> Service:
    return serve(database, PASSED, {**ON, "Service:ProxyOptions:Host": upstream.url})


@pytest.mark.parametrize(("method", "path"), [("GET", "/late"), ("PUT", "/put-late"), ("GET", "/reported")])
def test_proxy_hedges_slow_requests(proxy: Service, upstream: Upstream, method: str, path: str) -> None:
    slow = Second()
    upstream.on(path, slow)
    assert proxy.request(method, path, content=b"x" if method == "PUT" else b"").text.startswith("second ")
    assert [request.body for request in upstream.to(path)] == [b"x" if method == "PUT" else b""] * 2
    assert slow.given_up.wait(30)


def test_proxy_does_not_hedge_fast_or_unsafe_requests(proxy: Service, upstream: Upstream) -> None:
    upstream.on("/prompt", answer("once"))
    assert proxy.get("/prompt").text == "once"

    def late(_seen: Seen, _connection: socket.socket) -> bytes:
        upstream.released.wait(0.3)
        return answer("posted")

    upstream.on("/post-late", late)
    assert proxy.post("/post-late", content=b"x").text == "posted"
    assert [len(upstream.to(path)) for path in ("/prompt", "/post-late")] == [1, 1]
    assert "POST is not hedged: what is sent twice may take effect twice" in proxy.log
    assert "hedge has no effect, because the endpoint is not a proxy" in proxy.log
