"""Answers of other services that are sent where they arrive, and what has to take the longer way instead.

The shorter way needs a connection that is open already: each test asks for something plain before.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer, echo
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve


def schema(url: str) -> str:
    lines = {
        "got": "HTTP GET /any/{what}",
        "posted": "HTTP POST /any/{what}",
        "deleted": "HTTP DELETE /any/{what}",
        "headed": "HTTP GET /headed/{what}\nX-One: {what}",
        "due": "HTTP GET /due\ndeadline 600ms",
    }
    return "".join(
        f"create function {name}({'_what text' if '{' in line else ''}) returns void language sql as '';"
        f"comment on function {name} is $c${line}\nproxy {url}$c$;"
        for name, line in lines.items()
    )


@pytest.fixture(scope="module")
def behind(upstream: Upstream) -> Upstream:
    upstream.on("*", echo)

    def silent(_seen: Seen, _connection: socket.socket) -> None:
        upstream.released.wait(60)

    upstream.on("/any/silent", silent)
    return upstream


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, behind: Upstream) -> Service:
    settings = {"Service:ProxyOptions:Enabled": "true", "Service:ProxyOptions:DefaultTimeout": "2s"}
    return serve(database, schema(behind.url), settings, workers=1)


def again(service: Service, behind: Upstream, path: str, method: str = "GET") -> httpx.Response:
    """Over a connection that is open already."""
    assert service.get("/any/open").status_code == 200
    response = service.request(method, path)
    assert behind.to(path)[-1].method == method
    return response


def in_pieces(*pieces: bytes) -> Callable[[Seen, socket.socket], bytes]:
    """Each of them is there before the next one is sent."""

    def send(_seen: Seen, connection: socket.socket) -> bytes:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces[:-1]:
            connection.sendall(piece)
            threading.Event().wait(0.01)
        return pieces[-1]

    return send


def silent_until_left(left: threading.Event) -> Callable[[Seen, socket.socket], None]:
    """left: set when no client waits for the response any more."""

    def wait(_seen: Seen, connection: socket.socket) -> None:
        connection.settimeout(30)
        with contextlib.suppress(ConnectionResetError):
            connection.recv(1)
        left.set()

    return wait


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: t/x\r\n"
PIECES = {
    "head-and-body": (HEAD + b"Content-Length: 6\r\n\r\n", b"abcdef"),
    "body-in-three": (HEAD + b"Content-Length: 6\r\n\r\nab", b"cd", b"ef"),
    "head-in-two": (HEAD + b"Content-Le", b"ngth: 6\r\n\r\nabcdef"),
    "every-byte": tuple(bytes([byte]) for byte in HEAD + b"Content-Length: 6\r\n\r\nabcdef"),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", b"3\r\ndef\r\n0\r\n\r\n"),
    "chunks-at-once": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n",),
    "interim-first": (b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n", HEAD + b"Content-Length: 6\r\n\r\nabcdef"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", PIECES)
def test_responses_in_pieces_of_any_size_are_returned_whole(service: Service, behind: Upstream, what: str) -> None:
    behind.on(f"/any/{what}", in_pieces(*PIECES[what]))
    for _ in range(3):
        response = again(service, behind, f"/any/{what}")
        assert (response.status_code, response.headers["content-type"], response.text) == (200, "t/x", "abcdef")
    body = service.get("/any/after").json()
    assert body["target"] == "/any/after", "the connection is where it should be"


@pytest.mark.parametrize(("size", "by_length"), [(65_536, True), (65_537, True), (400_000, True), (400_000, False)])
def test_bodies_of_any_size_are_returned_whole(service: Service, behind: Upstream, size: int, by_length: bool) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    body = body[:size]
    path = f"/any/size-{size}-{by_length}"
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (size, body)
    behind.on(path, answer(body) if by_length else chunked)
    assert again(service, behind, path).content == body


@pytest.mark.parametrize("status", [200, 201, 204, 205, 206, 304, 400, 404, 500, 503])
def test_every_status_is_returned(service: Service, behind: Upstream, status: int) -> None:
    bare = status in (204, 304)
    sent = f"HTTP/1.1 {status} X\r\nX-A: b\r\n".encode() + (b"\r\n" if bare else b"Content-Length: 0\r\n\r\n")
    behind.on(f"/any/status-{status}", sent)
    response = again(service, behind, f"/any/status-{status}")
    assert (response.status_code, response.headers["x-a"], response.content) == (status, "b", b"")


def test_headers_are_forwarded_and_those_of_the_comment_have_precedence(service: Service, behind: Upstream) -> None:
    headers = [("X-One", "theirs"), ("X-Two", "2"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Keep-Alive", "x")]
    behind.on("/headed/it", answer("x", headers=headers))
    response = again(service, behind, "/headed/it")
    assert response.headers.get_list("x-one") == ["it"]
    assert (response.headers["x-two"], response.headers.get_list("set-cookie")) == ("2", ["a=1", "b=2"])
    assert "keep-alive" not in response.headers
    sent = {"X-Mine": "1", "Connection": "x-hop", "X-Hop": "2", "Content-Language": "de"}
    body = service.get("/any/shown", headers=sent).json()["headers"]
    assert body["x-mine"] == "1"
    assert not {"x-hop", "connection", "content-language"} & set(body)


def test_slow_responses_are_returned(service: Service, behind: Upstream) -> None:
    """Longer than the interval for requests without a task: first the head, then the body is late."""

    def late(_seen: Seen, connection: socket.socket) -> bytes:
        threading.Event().wait(0.4)
        connection.sendall(HEAD + b"Content-Length: 6\r\n\r\nabc")
        threading.Event().wait(0.4)
        return b"def"

    behind.on("/any/late", late)
    assert again(service, behind, "/any/late").text == "abcdef"


@pytest.mark.slow
def test_a_timeout_in_head_or_body_is_504(service: Service, behind: Upstream) -> None:
    assert "timed out after 2 seconds" in problem(again(service, behind, "/any/silent"), 504)["detail"]

    def half(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(HEAD + b"Content-Length: 6\r\n\r\nabc")
        behind.released.wait(60)

    behind.on("/any/half", half)
    problem(again(service, behind, "/any/half"), 504)


def test_an_incomplete_body_is_502(service: Service, behind: Upstream) -> None:
    def broken(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(HEAD + b"Content-Length: 6\r\n\r\nabc")

    behind.on("/any/broken", broken)
    detail = problem(again(service, behind, "/any/broken"), 502)["detail"]
    assert "before the response was complete" in detail


def test_bytes_behind_a_complete_response_are_discarded(service: Service, behind: Upstream) -> None:
    whole = HEAD + b"Content-Length: 6\r\n\r\nabcdef"
    behind.on("/any/more", whole + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
    for _ in range(3):
        assert again(service, behind, "/any/more").text == "abcdef"
        assert service.get("/any/next").json()["target"] == "/any/next"


def test_only_idempotent_requests_are_repeated_after_a_lost_connection(service: Service, behind: Upstream) -> None:
    """The server closes a connection that was usable before, without a response."""
    for path in ("/any/leaves-get", "/any/leaves-post"):
        met: list[int] = []

        def leaves(request: Seen, connection: socket.socket, met: list[int] = met) -> bytes | None:
            met.append(request.peer)
            return None if len(met) == 1 else echo(request, connection)

        behind.on(path, leaves)
        assert service.get("/any/open").status_code == 200
        if path.endswith("get"):
            assert service.get(path).json()["method"] == "GET"
            assert len(set(met)) == 2
        else:
            problem(service.post(path), 502)
            assert len(met) == 1


def test_redirects_are_followed(service: Service, behind: Upstream) -> None:
    behind.on("/any/there", b"HTTP/1.1 302 Found\r\nLocation: /any/here?x=1\r\nContent-Length: 3\r\n\r\nabc")
    assert again(service, behind, "/any/there").json()["target"] == "/any/here?x=1"
    behind.on("/any/nowhere", b"HTTP/1.1 302 Found\r\nContent-Length: 3\r\n\r\nabc")
    response = again(service, behind, "/any/nowhere")
    assert (response.status_code, response.text) == (302, "abc")


def test_methods_without_a_body_and_head(service: Service, behind: Upstream) -> None:
    assert again(service, behind, "/any/x", "POST").json()["method"] == "POST"
    assert again(service, behind, "/any/y", "DELETE").json()["method"] == "DELETE"
    head = again(service, behind, "/any/z", "HEAD")
    assert (head.status_code, head.content, behind.to("/any/z")[-1].method) == (200, b"", "HEAD")


def test_responses_belong_to_the_requested_path_and_query(service: Service) -> None:
    for target in ("/any/a", "/any/b", "/any/a?x=1", "/any/a?x=2", "/any/a", "/any/%C3%A9", "/any/a%20b"):
        assert service.get(target).json()["target"] == target


def test_the_deadline_of_the_endpoint_ends_the_outgoing_request(service: Service, behind: Upstream) -> None:
    closed = threading.Event()
    behind.on("/due", silent_until_left(closed))
    assert "deadline" in problem(again(service, behind, "/due"), 504)["detail"]
    assert closed.wait(30)


def test_a_disconnected_client_ends_the_outgoing_request(service: Service, behind: Upstream) -> None:
    left = threading.Event()
    behind.on("/any/stays", silent_until_left(left))
    service.get("/any/open")
    with service.connect() as connection:
        connection.sendall(b"GET /any/stays HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: behind.to("/any/stays"), "the call is under way")
    assert left.wait(30)


def test_every_client_gets_its_own_response(service: Service, behind: Upstream) -> None:
    def ask(number: int) -> bool:
        with service.new_client() as client:
            return all(
                client.get(f"/any/{number}-{turn}").json()["target"] == f"/any/{number}-{turn}" for turn in range(20)
            )

    accepted = behind.accepted
    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(ask, range(12)))
    assert behind.accepted - accepted <= 12
