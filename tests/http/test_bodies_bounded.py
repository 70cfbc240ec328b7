"""Limits of request bodies: nothing is read before the caller is admitted; time and memory are limited after that
(12.4)."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.raw_http import read_response
from tests.harness.service import ENGINE, Service
from tests.http.conftest import Serve
from tests.http.members import bearer, member_sql, tokens

pytestmark = pytest.mark.attack

SQL = """
create function many(_a text) returns text language sql volatile as $$select 'one'$$;
create function many(_a text, _b text) returns text language sql volatile as $$select 'two'$$;
comment on function many(text) is E'HTTP POST\\nauthorize boss';
comment on function many(text, text) is E'HTTP POST\\nauthorize gate';
create function half(_a text) returns text language sql volatile as $$select 'one'$$;
create function half(_a text, _b text) returns text language sql volatile as $$select 'two'$$;
comment on function half(text) is E'HTTP POST\\nauthorize';
comment on function half(text, text) is E'HTTP POST\\nallow_anonymous';
create function taken(_a text default null, _list int[] default null) returns int language sql volatile
as $$select length(_a)$$;
comment on function taken(text, int[]) is E'HTTP POST\\nallow_anonymous';
create function counted(_n int, _text text default '', _list text[] default '{}') returns int language sql volatile
as $$select _n$$;
comment on function counted(int, text, text[]) is E'HTTP POST\\nallow_anonymous';
create function proxied(_n int, _text text default '', _list text[] default '{}') returns int language sql volatile
as $$select _n$$;
comment on function proxied(int, text, text[]) is E'HTTP POST\\nallow_anonymous\\nproxy http://127.0.0.1:1';
create function look() returns int language sql stable as $$select 1$$;
comment on function look() is E'HTTP GET\\nallow_anonymous';
"""

SETTINGS = {
    "Auth:BearerTokenAuth": "true",
    "HttpServer:Limits:MinRequestBodyDataRateGracePeriod": "1 second",
    "HttpServer:Limits:MaxUrlEncodedBodySize": "30000000",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + SQL, SETTINGS)


@pytest.fixture(scope="module")
def without_short_timeouts(service: Service, database: Database, serve: Serve) -> Service:
    """Provide a service with the default time limits of bodies, because these tests do not concern time."""
    return serve(database, "", {"Auth:BearerTokenAuth": "true"})


@pytest.fixture(scope="module")
def with_antiforgery(service: Service, database: Database, serve: Serve) -> Service:
    """Provide a service that searches forms for an antiforgery token."""
    return serve(database, "", {**SETTINGS, "Antiforgery:Enabled": "true"})


@contextlib.contextmanager
def request_head_sent(
    service: Service, path: str, size: int, kind: str = "application/json", **headers: str
) -> Iterator[socket.socket]:
    """Send the head of a request whose body follows later."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Type: {kind}", f"Content-Length: {size}", *lines, "", ""]
    with service.connect() as connection:
        connection.sendall("\r\n".join(head).encode())
        yield connection


def status(connection: socket.socket) -> int:
    response = read_response(connection)
    assert response is not None
    return response.status


# --- before anything is read ---------------------------------------------------------------------------------------


def test_anonymous_callers_are_refused_before_their_body_is_read(service: Service) -> None:
    """Also on a route with several overloads, where the body selects one."""
    with request_head_sent(service, "/api/many", 29_000_000) as connection:
        assert status(connection) == 401


def test_callers_without_access_to_any_overload_are_refused_before_the_body(service: Service) -> None:
    token = tokens(service, "BearerToken", "open")["accessToken"]
    with request_head_sent(service, "/api/many", 29_000_000, Authorization=f"Bearer {token}") as connection:
        assert status(connection) == 403


def test_body_is_read_if_the_caller_may_call_one_overload(service: Service) -> None:
    headers = bearer(tokens(service, "BearerToken", "mo")["accessToken"])
    assert service.post("/api/many", json={"a": "x", "b": "y"}, headers=headers).text == "two"
    problem(service.post("/api/many", json={"a": "x"}, headers=headers), 403)


def test_body_selects_among_public_and_closed_overloads(service: Service) -> None:
    assert service.post("/api/half", json={"a": "x", "b": "y"}).text == "two"
    problem(service.post("/api/half", json={"a": "x"}), 401)


def test_login_and_refresh_bodies_have_small_limits(service: Service) -> None:
    with request_head_sent(service, "/api/sign-in", 70_000) as connection:
        assert status(connection) == 413
    with request_head_sent(service, "/api/token/refresh", 140_000) as connection:
        assert status(connection) == 413


# --- limits of the content ----------------------------------------------------------------------------------------

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.slow
def test_form_with_a_million_fields_is_refused(service: Service) -> None:
    body = b"&".join(b"k%d=1" % number for number in range(1_000_000))
    assert "10000 fields" in problem(service.post("/api/taken", content=body, headers=FORM), 400)["detail"]
    body = b"list=1&" * 1_000_000
    problem(service.post("/api/taken", content=body, headers=FORM), 400)


def test_form_with_a_large_array_is_accepted(service: Service) -> None:
    body = b"a=xy&" + b"&".join(b"list=%d" % number for number in range(9_000))
    assert service.post("/api/taken", content=body, headers=FORM).text == "2"


def test_antiforgery_check_refuses_a_form_with_a_million_fields(with_antiforgery: Service) -> None:
    part = b'--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n'
    pairs: dict[str, object] = {"content": b"a=1&" * 1_000_000, "headers": FORM}
    for form in (pairs, multipart("x", part * 400_000 + b"--x--\r\n")):
        assert "10000 fields" in problem(with_antiforgery.post("/api/taken", **form), 400)["detail"]


def requests_served_meanwhile(service: Service, path: str, body: bytes, kind: str = FORM["Content-Type"]) -> int:
    """Return the number of requests that the same worker serves between the end of a body and the refusal of it."""
    with request_head_sent(service, path, len(body), kind) as connection, service.connect() as other:
        connection.sendall(body[:-1])
        while has_unread_bytes(service, connection):
            assert send_small_request(other) == b"1"
        # The HTTP server passes the part of the body that it has read to the worker meanwhile.
        for _ in range(10):
            assert send_small_request(other) == b"1"
        connection.sendall(body[-1:])
        answered = 0
        while not select.select([connection], [], [], 0)[0]:
            assert send_small_request(other) == b"1"
            answered += 1
        assert status(connection) == 400
    return answered


def has_unread_bytes(service: Service, connection: socket.socket) -> bool:
    """Return whether bytes of the client wait in the sockets of a connection: columns of proc_net_tcp(5)."""
    client, server = (f":{port:04X}" for port in (connection.getsockname()[1], service.port))
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sent = [row[4].split(":")[0] for row in rows if row[1].endswith(client) and row[2].endswith(server)]
    received = [row[4].split(":")[1] for row in rows if row[1].endswith(server) and row[2].endswith(client)]
    return any(int(size, 16) for size in sent + received)


def send_small_request(connection: socket.socket) -> bytes:
    connection.sendall(b"GET /api/look HTTP/1.1\r\nHost: x\r\n\r\n")
    response = read_response(connection)
    assert response is not None
    return response.body


ESCAPES = b"n=x&text=" + b"%41" * 9_700_000
LONG_NAME = ESCAPES.removeprefix(b"n=x&text=")
SHORT_FIELDS = b"n=x" + b"&list=%41".ljust(2900, b"%") * 9_900


FEW = 4
"""Responses during two bodies if bodies block everything else: one or two each."""


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/api/counted", "/api/proxied"])
@pytest.mark.parametrize("body", [ESCAPES, SHORT_FIELDS], ids=["escapes", "short fields"])
def test_other_requests_are_served_while_a_form_is_decoded(service: Service, path: str, body: bytes) -> None:
    """The form is refused after decoding: `n` is not a number."""
    kinds = (FORM["Content-Type"], f"{FORM['Content-Type']}; charset=latin1")
    assert sum(requests_served_meanwhile(service, path, body, kind) for kind in kinds) > FEW


@pytest.mark.slow
def test_other_requests_are_served_while_a_form_is_searched_for_its_token(with_antiforgery: Service) -> None:
    assert sum(requests_served_meanwhile(with_antiforgery, "/api/counted", LONG_NAME) for _ in range(2)) > FEW


def multipart(boundary: str, body: bytes) -> dict[str, object]:
    return {"content": body, "headers": {"Content-Type": f"multipart/form-data; boundary={boundary}"}}


def test_multipart_body_with_many_parts_is_refused(service: Service) -> None:
    part = b'--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n'
    problem(service.post("/api/taken", **multipart("x", part * 400_000 + b"--x--\r\n")), 400)


def test_oversized_multipart_part_headers_are_refused(service: Service) -> None:
    body = b"--x\r\ncontent-disposition: form-data; name=" + b"a" * 20_000_000
    assert "header" in problem(service.post("/api/taken", **multipart("x", body)), 400)["detail"]
    body = b"--x\r\n" + b"a: b\r\n" * 4_000_000
    assert "header" in problem(service.post("/api/taken", **multipart("x", body)), 400)["detail"]


@pytest.mark.parametrize("length", [71, 257, 4000])
def test_too_long_multipart_boundary_is_refused(service: Service, length: int) -> None:
    boundary = "b" * length
    body = f'--{boundary}\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n--{boundary}--\r\n'.encode()
    assert "boundary" in problem(service.post("/api/taken", **multipart(boundary, body)), 400)["detail"]


def test_multipart_boundary_of_70_characters_is_accepted(service: Service) -> None:
    boundary = "b" * 70
    body = f'--{boundary}\r\ncontent-disposition: form-data; name="a"\r\n\r\nxyz\r\n--{boundary}--\r\n'.encode()
    assert service.post("/api/taken", **multipart(boundary, body)).text == "3"


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/api/taken", "/api/half"])
def test_json_object_with_a_million_keys_is_refused(service: Service, path: str) -> None:
    body = b"{" + b",".join(b'"k%d":1' % number for number in range(1_000_000)) + b"}"
    assert service.post(path, content=body).status_code in (400, 401)


@pytest.mark.parametrize("body", [b"[" * 900_000 + b"]" * 900_000, b'{"a":' * 300_000 + b"1" + b"}" * 300_000])
def test_too_deeply_nested_json_is_refused(service: Service, body: bytes) -> None:
    problem(service.post("/api/taken", content=b'{"list":' + body + b"}"), 400)


def test_million_one_byte_chunks_do_not_occupy_the_worker(without_short_timeouts: Service) -> None:
    """A body of a million chunks of one byte: those that arrive together are one piece. granian hands over each one,
    and the worker refuses too many."""
    head = b"POST /api/taken HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with without_short_timeouts.connect() as connection:
        connection.sendall(head)
        with contextlib.suppress(OSError):
            connection.sendall(b"1\r\n \r\n" * 1_000_000 + b"2\r\n{}\r\n0\r\n\r\n")
        # On a busy machine, the first thousands take granian so long that the time limit applies first.
        assert status(connection) in ((400, 408) if ENGINE else (200,))


# --- how it comes --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_stalled_body_gets_408(service: Service) -> None:
    for size in (100, 1_000_000):
        with request_head_sent(service, "/api/taken", size) as connection:
            connection.sendall(b'{"a":"')
            assert status(connection) == 408


@pytest.mark.slow
def test_body_below_the_minimum_data_rate_gets_408(service: Service) -> None:
    with request_head_sent(service, "/api/taken", 1_000_000) as connection:
        ended = threading.Event()

        def drip() -> None:
            with contextlib.suppress(OSError):
                while not ended.wait(0.2):
                    connection.sendall(b" ")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert status(connection) == 408
        finally:
            ended.set()
            dripping.join()


@pytest.mark.slow
def test_body_longer_than_the_total_time_limit_gets_408(own_database: Database, serve_once: Serve) -> None:
    # A separate service: large bodies of other tests may take long on a busy machine.
    limits = {**SETTINGS, "HttpServer:Limits:RequestBodyTimeout": "3 seconds"}
    with request_head_sent(
        serve_once(own_database, member_sql() + SQL, limits), "/api/taken", 10_000_000
    ) as connection:
        ended = threading.Event()

        def trickle() -> None:
            with contextlib.suppress(OSError):
                while not ended.wait(0.2):
                    connection.sendall(b" " * 2000)

        trickling = threading.Thread(target=trickle)
        trickling.start()
        try:
            assert status(connection) == 408
        finally:
            ended.set()
            trickling.join()


@pytest.mark.slow
def test_slow_body_above_the_minimum_data_rate_is_accepted(service: Service) -> None:
    body = b'{"a":"' + b"x" * 3000 + b'"}'
    with request_head_sent(service, "/api/taken", len(body)) as connection:
        for start in range(0, len(body), 600):
            connection.sendall(body[start : start + 600])
            threading.Event().wait(0.5)
        assert status(connection) == 200


# --- how much of it ------------------------------------------------------------------------------------------------


def test_single_body_may_be_as_large_as_the_limit(without_short_timeouts: Service) -> None:
    body = b'{"a":"' + b"x" * 29_999_990 + b'"}'
    assert without_short_timeouts.post("/api/taken", content=body).text == "29999990"
