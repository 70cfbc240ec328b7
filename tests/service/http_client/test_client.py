"""The client for other servers: TLS, HTTP/2, pools, redirects, and what must not be called."""

from __future__ import annotations

import asyncio
import queue
import socket
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from rowcall.core.outgoing.address import read_address
from rowcall.core.outgoing.guard import Guard, RefusedError
from rowcall.core.outgoing.options import ClientOptions
from rowcall.service.http_client.circuit_breakers import CircuitBreakers
from rowcall.service.http_client.client import Client
from rowcall.service.http_client.errors import NotReachedError, OutboundError, QueueFullError, TooLargeError
from rowcall.service.http_client.messages import OutgoingRequest
from rowcall.service.shared_state.environment import LEAST, Environment
from tests.harness.upstream import Seen, Upstream, answer
from tests.harness.upstream_http2 import Http2Upstream, _Peer
from tests.harness.waiting import wait_until

Value = TypeVar("Value")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


@pytest.fixture(scope="module")
def context(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*map(str, certificate))
    return context


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


@pytest.fixture
def secure(context: ssl.SSLContext) -> Iterator[Upstream]:
    server = Upstream(context)
    yield server
    server.close()


@pytest.fixture
def second(certificate: tuple[Path, Path]) -> Iterator[Http2Upstream]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*map(str, certificate))
    server = Http2Upstream(context)
    yield server
    server.close()


def request(url: str, method: str = "GET", body: bytes | None = None) -> OutgoingRequest:
    return OutgoingRequest(method, read_address(url), [("X-One", "1")], body)


async def ask(client: Client, url: str, method: str = "GET", body: bytes | None = None, *, named: bool = True) -> bytes:
    reply = await client.send(request(url, method, body), named=named)
    assert reply.status == 200
    return await reply.read(None)


def run(work: Callable[[Client], Awaitable[Value]], options: ClientOptions | None = None) -> Value:
    """`work(client)` in a loop of its own; nothing may be left open."""

    async def whole() -> Value:
        client = Client(options or ClientOptions())
        try:
            return await asyncio.wait_for(work(client), 30)
        finally:
            client.close()
            for _ in range(5):
                # What was aborted is closed in one of the next turns of the loop.
                await asyncio.sleep(0)
            assert client.open_connections == 0

    return asyncio.run(whole())


# --- TLS ------------------------------------------------------------------------------------------------------------


def test_a_certificate_of_an_unknown_authority_is_refused(secure: Upstream) -> None:
    with pytest.raises(NotReachedError, match="the certificate is not valid"):
        run(lambda client: ask(client, f"https://localhost:{secure.port}/echo"))


def test_a_certificate_of_a_configured_authority_is_accepted(secure: Upstream, certificate: tuple[Path, Path]) -> None:
    options = ClientOptions(ca_file=str(certificate[0]))
    assert b'"method": "GET"' in run(lambda client: ask(client, f"https://localhost:{secure.port}/echo"), options)


def test_a_certificate_of_another_host_is_refused(secure: Upstream, certificate: tuple[Path, Path]) -> None:
    options = ClientOptions(ca_file=str(certificate[0]))
    with pytest.raises(NotReachedError, match="the certificate is not valid"):
        run(lambda client: ask(client, f"https://127.0.0.1:{secure.port}/echo"), options)


def test_https_to_a_server_without_tls_fails(upstream: Upstream) -> None:
    with pytest.raises(OutboundError):
        run(lambda client: ask(client, f"https://localhost:{upstream.port}/echo"))


# --- the end of a client --------------------------------------------------------------------------------------------


def test_a_closed_client_ends_connections_after_their_requests(upstream: Upstream) -> None:
    go_on, ends = threading.Event(), queue.SimpleQueue[bytes]()

    def slow(_seen: Seen, connection: socket.socket) -> bytes | None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
        assert go_on.wait(30)
        connection.sendall(b"two")
        connection.settimeout(30)
        ends.put(connection.recv(1))
        return None

    upstream.on("/slow", slow)

    async def work(client: Client) -> bytes:
        reply = await client.send(request(f"http://127.0.0.1:{upstream.port}/slow"), named=True)
        client.close()
        go_on.set()
        content = await reply.read(None)
        assert await asyncio.to_thread(ends.get, timeout=30) == b""
        return content

    assert run(work) == b"onetwo"


# --- HTTP/2 ---------------------------------------------------------------------------------------------------------


def test_http2_is_used_where_the_server_offers_it(second: Http2Upstream, certificate: tuple[Path, Path]) -> None:
    def echo(peer: _Peer, stream: int, headers: dict[str, str], body: bytes) -> None:
        peer.answer(stream, f"{headers[':method']} {headers['x-one']} ".encode() + body)

    second.reactions["/echo"] = echo
    options = ClientOptions(ca_file=str(certificate[0]))

    async def work(client: Client) -> list[bytes]:
        url = f"{second.url}/echo"
        first = await ask(client, url)
        others = await asyncio.gather(*(ask(client, url, "POST", b"x%d" % number) for number in range(50)))
        return [first, *others]

    responses = run(work, options)
    assert responses == [b"GET 1 ", *(b"POST 1 x%d" % number for number in range(50))]
    assert len(second.connections) == 1


@pytest.mark.slow
def test_large_bodies_are_sent_and_received_over_http2(second: Http2Upstream, certificate: tuple[Path, Path]) -> None:
    second.reactions["/large"] = lambda peer, stream, headers, body: peer.answer(stream, body * 3)
    options = ClientOptions(ca_file=str(certificate[0]))
    body = bytes(range(256)) * 20_000

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    async def work(client: Client) -> bytes:
        outgoing = OutgoingRequest("POST", read_address(f"{second.url}/large"), [], pieces())
        return await (await client.send(outgoing, named=True)).read(None)

    assert run(work, options) == body * 3


def test_a_refused_stream_is_repeated(second: Http2Upstream, certificate: tuple[Path, Path]) -> None:
    refusals = iter([True])

    def react(peer: _Peer, stream: int, headers: dict[str, str], body: bytes) -> None:
        if next(refusals, False):
            peer.reset(stream)
        else:
            peer.answer(stream, b"good")

    second.reactions["/warm"] = lambda peer, stream, headers, body: peer.answer(stream, b"warm")
    second.reactions["/refused"] = react
    options = ClientOptions(ca_file=str(certificate[0]))

    async def work(client: Client) -> bytes:
        await ask(client, f"{second.url}/warm")
        return await ask(client, f"{second.url}/refused")

    assert run(work, options) == b"good"


def test_a_request_refused_by_goaway_is_repeated(second: Http2Upstream, certificate: tuple[Path, Path]) -> None:
    gone = iter([True])

    def react(peer: _Peer, stream: int, headers: dict[str, str], body: bytes) -> None:
        if next(gone, False):
            peer.go_away(stream - 2)
        else:
            peer.answer(stream, b"good")

    second.reactions["/warm"] = lambda peer, stream, headers, body: peer.answer(stream, b"warm")
    second.reactions["/gone"] = react
    options = ClientOptions(ca_file=str(certificate[0]))

    async def work(client: Client) -> bytes:
        await ask(client, f"{second.url}/warm")
        return await ask(client, f"{second.url}/gone")

    assert run(work, options) == b"good"
    assert len(second.connections) == 2


def test_a_server_that_sends_goaway_completes_running_requests(
    second: Http2Upstream, certificate: tuple[Path, Path]
) -> None:
    second.early["/last"] = lambda peer, stream: peer.leave(stream)
    second.reactions["/last"] = lambda peer, stream, headers, body: peer.answer(stream, body)
    second.reactions["/next"] = lambda peer, stream, headers, body: peer.answer(stream, b"next")
    body = bytes(200_000)  # more than the window: most of it is sent after GOAWAY

    async def work(client: Client) -> None:
        assert await ask(client, f"{second.url}/last", "POST", body) == body
        assert await ask(client, f"{second.url}/next") == b"next"

    run(work, ClientOptions(ca_file=str(certificate[0])))
    assert len(second.connections) == 2


@pytest.mark.parametrize(("method", "repeated"), [("GET", True), ("POST", False)])
def test_a_connection_that_closes_before_the_response_is_replaced_for_idempotent_requests(
    second: Http2Upstream, certificate: tuple[Path, Path], method: str, repeated: bool
) -> None:
    closes = iter([True])

    def react(peer: _Peer, stream: int, headers: dict[str, str], body: bytes) -> None:
        if next(closes, False):
            peer.transport.abort()
        else:
            peer.answer(stream, b"good")

    second.reactions["/warm"] = lambda peer, stream, headers, body: peer.answer(stream, b"warm")
    second.reactions["/closed"] = react
    options = ClientOptions(ca_file=str(certificate[0]))

    async def work(client: Client) -> bytes:
        await ask(client, f"{second.url}/warm")
        return await ask(client, f"{second.url}/closed", method)

    if repeated:
        assert run(work, options) == b"good"
    else:
        with pytest.raises(OutboundError):
            run(work, options)


HOSTILE_HEADERS = [
    [(":status", "7")],
    [(":status", "000")],
    [(":status", "abc")],
    [(":status", "2000")],
    [(":status", "600")],
    [(":status", "200"), *((f"x-{number}", "1") for number in range(600))],
    [(":status", "200"), ("a b", "c")],
    [(":status", "200"), ("a", "b\r\nc: d")],
    [(":status", "200"), ("content-length", "\u00b2")],
]


@pytest.mark.parametrize("headers", HOSTILE_HEADERS)
def test_a_malformed_response_over_http2_fails_its_request(
    second: Http2Upstream, certificate: tuple[Path, Path], headers: list[tuple[str, str]]
) -> None:
    def malformed(peer: _Peer, stream: int, _headers: dict[str, str], _body: bytes) -> None:
        peer.state.config.validate_outbound_headers = False
        peer.state.config.normalize_outbound_headers = False
        peer.state.send_headers(stream, headers, end_stream=True)

    second.reactions["/bad"] = malformed
    second.reactions["/good"] = lambda peer, stream, headers, body: peer.answer(stream, b"good")

    async def work(client: Client) -> bytes:
        with pytest.raises(OutboundError):
            await ask(client, f"{second.url}/bad")
        return await ask(client, f"{second.url}/good")

    assert run(work, ClientOptions(ca_file=str(certificate[0]))) == b"good"


def test_endless_interim_responses_over_http2_fail_their_request(
    second: Http2Upstream, certificate: tuple[Path, Path]
) -> None:
    def endless(peer: _Peer, stream: int, _headers: dict[str, str], _body: bytes) -> None:
        for _ in range(200):
            peer.state.send_headers(stream, [(":status", "103")])

    second.reactions["/endless"] = endless

    async def work(client: Client) -> None:
        with pytest.raises(OutboundError, match="interim"):
            await ask(client, f"{second.url}/endless")

    run(work, ClientOptions(ca_file=str(certificate[0])))


def test_an_empty_data_frame_does_not_end_a_body(second: Http2Upstream, certificate: tuple[Path, Path]) -> None:
    waiting: list[Callable[[], None]] = []

    def react(peer: _Peer, stream: int, _headers: dict[str, str], _body: bytes) -> None:
        def go_on() -> None:
            peer.state.send_data(stream, b"whole", end_stream=True)
            peer.flush()

        peer.state.send_headers(stream, [(":status", "200")])
        peer.state.send_data(stream, b"")
        peer.state.send_data(stream, b"", pad_length=9)
        waiting.append(go_on)

    second.reactions["/"] = react

    async def work(client: Client) -> bytes:
        reply = await client.send(request(f"{second.url}/"), named=True)
        reading = asyncio.create_task(reply.read(None))
        await asyncio.sleep(0)
        second.loop.call_soon_threadsafe(waiting[0])
        return await reading

    assert run(work, ClientOptions(ca_file=str(certificate[0]))) == b"whole"


def test_early_http2_responses_leak_no_streams(second: Http2Upstream, certificate: tuple[Path, Path]) -> None:
    second.early["/large"] = lambda peer, stream: peer.answer(stream, b"too large", 413)
    second.reactions["/good"] = lambda peer, stream, headers, body: peer.answer(stream, b"good")

    async def work(client: Client) -> bytes:
        for _ in range(110):  # the server allows 100 at a time
            reply = await client.send(request(f"{second.url}/large", "POST", bytes(100_000)), named=True)
            assert (reply.status, await reply.read(None)) == (413, b"too large")
        return await ask(client, f"{second.url}/good")

    assert run(work, ClientOptions(ca_file=str(certificate[0]))) == b"good"
    assert len(second.connections) == 1


def test_failing_request_bodies_leak_no_http2_streams(second: Http2Upstream, certificate: tuple[Path, Path]) -> None:
    second.reactions["/good"] = lambda peer, stream, headers, body: peer.answer(stream, b"good")

    async def broken() -> AsyncIterator[bytes]:
        yield b"begin"
        raise EOFError

    async def work(client: Client) -> bytes:
        for _ in range(110):  # the server allows 100 at a time
            with pytest.raises(EOFError):
                await client.send(OutgoingRequest("POST", read_address(f"{second.url}/good"), [], broken()), named=True)
        return await ask(client, f"{second.url}/good")

    assert run(work, ClientOptions(ca_file=str(certificate[0]))) == b"good"
    assert len(second.connections) == 1


def test_a_request_that_http2_cannot_express_fails_alone(second: Http2Upstream, certificate: tuple[Path, Path]) -> None:
    second.reactions["/good"] = lambda peer, stream, headers, body: peer.answer(stream, b"good")

    async def work(client: Client) -> bytes:
        with pytest.raises(OutboundError, match="cannot be sent over HTTP/2"):
            await client.send(OutgoingRequest("CONNECT", read_address(f"{second.url}/good"), []), named=True)
        return await ask(client, f"{second.url}/good")

    assert run(work, ClientOptions(ca_file=str(certificate[0]))) == b"good"


# --- pools ----------------------------------------------------------------------------------------------------------


def test_requests_beyond_the_connection_limit_wait(upstream: Upstream) -> None:
    async def work(client: Client) -> int:
        responses = await asyncio.gather(*(ask(client, f"{upstream.url}/echo") for _ in range(40)))
        return len(responses)

    assert run(work, ClientOptions(connections=3)) == 40
    assert upstream.accepted == 3


def test_waiting_requests_share_an_http2_connection(second: Http2Upstream, certificate: tuple[Path, Path]) -> None:
    """No response comes before all requests have: each of them has to be sent while the others are under way."""
    waiting: list[int] = []

    def answer_all(peer: _Peer, stream: int, _headers: dict[str, str], _body: bytes) -> None:
        waiting.append(stream)
        if len(waiting) == 20:
            for each in waiting:
                peer.answer(each, b"all")

    second.reactions["/all"] = answer_all

    async def work(client: Client) -> list[bytes]:
        return await asyncio.gather(*(ask(client, f"{second.url}/all") for _ in range(20)))

    options = ClientOptions(connections=1, ca_file=str(certificate[0]))
    assert run(work, options) == [b"all"] * 20
    assert len(second.connections) == 1


def test_too_many_waiting_requests_fail_immediately(upstream: Upstream) -> None:
    def slow(_seen: Seen, _connection: socket.socket) -> bytes:
        upstream.released.wait(10)
        return answer("")

    upstream.on("/slow", slow)

    async def work(client: Client) -> None:
        first = asyncio.ensure_future(ask(client, f"{upstream.url}/slow"))
        await asyncio.sleep(0)
        with pytest.raises(NotReachedError, match="too many requests wait"):
            await ask(client, f"{upstream.url}/slow")
        first.cancel()

    run(work, ClientOptions(connections=1, queue=0))


def test_a_full_queue_does_not_count_as_failure_of_the_server(upstream: Upstream, tmp_path: Path) -> None:
    def hold(_seen: Seen, _connection: socket.socket) -> bytes:
        upstream.released.wait(10)
        return answer("")

    upstream.on("/slow", hold)
    environment = Environment(tmp_path / "circuits", LEAST)
    circuit_breakers = CircuitBreakers(environment, 1, 3600)

    async def work() -> None:
        client = Client(ClientOptions(connections=1, queue=0), circuit_breakers)
        first = asyncio.ensure_future(ask(client, f"{upstream.url}/slow"))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await ask(client, f"{upstream.url}/slow")
        circuit_breakers.check(read_address(upstream.url).origin)
        first.cancel()
        client.close()

    asyncio.run(work())
    environment.close()


def test_an_idle_http2_connection_is_closed(second: Http2Upstream, certificate: tuple[Path, Path]) -> None:
    second.reactions["/"] = lambda peer, stream, headers, body: peer.answer(stream, b"")

    async def work(client: Client) -> None:
        await ask(client, f"{second.url}/")
        assert client.open_connections == 1
        await asyncio.to_thread(wait_until, lambda: client.open_connections == 0, "it is closed")

    run(work, ClientOptions(idle=0.1, ca_file=str(certificate[0])))


def test_hosts_without_connections_are_removed() -> None:
    async def work(client: Client) -> None:
        for number in range(1, 20):
            with pytest.raises(NotReachedError):
                await ask(client, f"http://127.0.0.{number}:1/")
        await asyncio.to_thread(wait_until, lambda: not client._pool._hosts, "they are forgotten")

    run(work, ClientOptions(idle=0.1))


def test_a_cancelled_request_releases_its_place(upstream: Upstream) -> None:
    def hold(_seen: Seen, _connection: object) -> None:
        upstream.released.wait(10)

    upstream.on("/silent", hold)

    async def work(client: Client) -> bytes:
        for _ in range(5):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await ask(client, f"{upstream.url}/silent")
        return await ask(client, f"{upstream.url}/echo")

    assert b"GET" in run(work, ClientOptions(connections=1))


def test_a_response_over_the_limit_is_refused(upstream: Upstream) -> None:
    upstream.on("/large", answer(b"x" * 100_000))

    async def work(client: Client) -> None:
        reply = await client.send(request(f"{upstream.url}/large"), named=True)
        with pytest.raises(TooLargeError):
            await reply.read(1000)

    run(work)


# --- what must not be called ----------------------------------------------------------------------------------------

OTHERS = ["127.0.0.1", "2130706433", "0x7f000001", "127.1", "0177.0.0.1", "[::ffff:127.0.0.1]", "localhost", "[::1]"]


@pytest.mark.parametrize("host", OTHERS)
def test_hosts_from_values_cannot_be_private_addresses(upstream: Upstream, host: str) -> None:
    with pytest.raises((RefusedError, NotReachedError)) as refused:
        run(lambda client: ask(client, f"http://{host}:{upstream.port}/echo", named=False))
    assert "allowed" in str(refused.value) or "is not known" in str(refused.value)
    assert upstream.accepted == 0


def test_hosts_from_values_can_be_allowed_networks(upstream: Upstream) -> None:
    allowed = ClientOptions(guard=Guard(networks=("127.0.0.0/8",)))
    assert b"GET" in run(lambda client: ask(client, f"{upstream.url}/echo", named=False), allowed)


def test_a_redirect_to_a_private_address_is_refused(upstream: Upstream) -> None:
    inner = Upstream()
    upstream.on("/away", f"HTTP/1.1 302 Found\r\nLocation: {inner.url}/echo\r\nContent-Length: 0\r\n\r\n".encode())
    try:
        with pytest.raises(RefusedError):
            run(lambda client: ask(client, f"{upstream.url}/away"))
        assert inner.accepted == 0
        allowed = ClientOptions(guard=Guard(hosts=(f"127.0.0.1:{inner.port}",)))
        assert b"GET" in run(lambda client: ask(client, f"{upstream.url}/away"), allowed)
    finally:
        inner.close()


def test_a_redirect_to_another_host_carries_no_credentials(upstream: Upstream) -> None:
    inner = Upstream()
    upstream.on("/away", f"HTTP/1.1 307 Again\r\nLocation: {inner.url}/echo\r\nContent-Length: 0\r\n\r\n".encode())
    harmless = [("Accept-Language", "de"), ("Content-Type", "text/plain"), ("X-Request-Id", "2")]
    secret = [("Authorization", "secret"), ("Cookie", "a=b"), ("X-Api-Key", "key"), ("request.user_id", "7")]
    outgoing = OutgoingRequest("POST", read_address(f"{upstream.url}/away"), [*harmless, *secret], b"body")

    async def work(client: Client) -> bytes:
        return await (await client.send(outgoing, named=True)).read(None)

    try:
        run(work, ClientOptions(guard=Guard(networks=("127.0.0.0/8",))))
        seen = inner.seen[0]
        assert (seen.method, seen.body) == ("POST", b"body")
        assert [(name, seen.header(name)) for name, _ in harmless] == harmless
        assert [name for name, _ in secret if seen.header(name) is not None] == []
    finally:
        inner.close()


def test_a_circle_of_redirects_ends(upstream: Upstream) -> None:
    upstream.on("/circle", b"HTTP/1.1 302 Found\r\nLocation: /circle\r\nContent-Length: 0\r\n\r\n")

    async def work(client: Client) -> int:
        return (await client.send(request(f"{upstream.url}/circle"), named=True)).status

    assert run(work) == 302
    assert len(upstream.to("/circle")) == 51


@pytest.mark.parametrize(
    ("status", "method", "then", "body"),
    [(301, "POST", "GET", b""), (302, "POST", "GET", b""), (303, "PUT", "GET", b""), (307, "POST", "POST", b"b"),
     (308, "PUT", "PUT", b"b"), (302, "PUT", "PUT", b"b")],
)  # fmt: skip
def test_methods_after_redirects_follow_the_status(
    upstream: Upstream, status: int, method: str, then: str, body: bytes
) -> None:
    upstream.on("/r", f"HTTP/1.1 {status} R\r\nLocation: /echo?x\r\nContent-Length: 2\r\n\r\nxx".encode())
    run(lambda client: ask(client, f"{upstream.url}/r", method, b"b"))
    seen = upstream.to("/echo")[0]
    assert (seen.method, seen.body) == (then, body)


def test_user_and_password_of_a_url_are_credentials(upstream: Upstream) -> None:
    run(lambda client: ask(client, f"http://u:p@127.0.0.1:{upstream.port}/echo"))
    assert upstream.seen[0].header("authorization") == "Basic dTpw"


@pytest.mark.parametrize("head", ["Content-Length: 2\n", "Content-Length: 2\r\nX: y\n"])
def test_header_lines_may_end_with_lf(upstream: Upstream, head: str) -> None:
    upstream.on("/plain", f"HTTP/1.1 200 OK\n{head}\nhi".encode())
    assert run(lambda client: ask(client, f"{upstream.url}/plain")) == b"hi"


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\0b"])
def test_a_header_value_with_a_line_end_is_refused(value: str) -> None:
    with pytest.raises(RefusedError):
        OutgoingRequest("GET", read_address("http://h/"), [("X-One", value)])
