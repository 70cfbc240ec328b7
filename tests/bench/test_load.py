"""The load generator counts correct, wrong and lost responses; it is tested against real sockets."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from bench.load import Tally, Target, generate, raw_request

GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\n\r\n"

LAST = b"<close>"
"""After a response: the connection closes behind it."""

Respond = Callable[[int], bytes | None]
"""The bytes for the n-th request of a connection; None closes the connection instead."""


@contextmanager
def serving(respond: Respond, chunk_size: int, pause: float) -> Iterator[int]:
    """chunk_size: bytes sent at a time. pause: seconds before each response."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        talk = partial(converse, respond, chunk_size, pause)
        threading.Thread(target=accept, args=(listener, talk), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def accept(listener: socket.socket, talk: Callable[[socket.socket], None]) -> None:
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=talk, args=(peer,), daemon=True).start()


def converse(respond: Respond, chunk_size: int, pause: float, peer: socket.socket) -> None:
    number = 0
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with peer:
        try:
            while peer.recv(65536):
                response = respond(number)
                if response is None:
                    return
                threading.Event().wait(pause)
                whole = response.removesuffix(LAST)
                for start in range(0, len(whole), chunk_size):
                    peer.sendall(whole[start : start + chunk_size])
                if whole is not response:
                    return
                number += 1
        except ConnectionError:
            return


def load(respond: Respond, rate: float = 0.0, chunk_size: int = 65536, pause: float = 0.0) -> Tally:
    with serving(respond, chunk_size, pause) as port:
        target = Target("127.0.0.1", port, raw_request("GET", "/", "test", b""), b"ok")
        return generate(target, 4, 0.2, rate)


@pytest.mark.slow
@pytest.mark.parametrize("response", [GOOD, CHUNKED])
def test_every_request_is_answered_by_a_correct_service(response: bytes) -> None:
    tally = load(lambda _: response)
    assert tally.sent == tally.answered > 0
    assert (tally.wrong, tally.lost) == (0, 0)


def test_a_different_body_is_counted_as_wrong() -> None:
    tally = load(lambda number: GOOD.replace(b"ok", b"ko") if number == 1 else GOOD)
    assert tally.wrong == 4


def test_a_different_status_is_counted_as_wrong() -> None:
    tally = load(lambda number: GOOD.replace(b"200 OK", b"503 No") if number == 1 else GOOD)
    assert tally.wrong == 4


def test_a_duplicated_response_is_counted_as_wrong() -> None:
    assert load(lambda number: GOOD + GOOD if number == 0 else GOOD).wrong > 0


def test_a_request_on_a_closed_connection_is_counted_as_lost() -> None:
    tally = load(lambda number: None if number == 2 else GOOD)
    assert tally.lost > 0
    assert tally.sent == tally.answered + tally.lost


def test_a_given_rate_is_not_exceeded() -> None:
    assert 0 < load(lambda _: GOOD, rate=100).sent <= 21


@pytest.mark.parametrize("whole", [GOOD, CHUNKED])
def test_a_response_may_arrive_in_chunks_of_any_size(whole: bytes) -> None:
    tally = load(lambda _: whole, chunk_size=1)
    assert tally.answered > 0
    assert (tally.wrong, tally.lost) == (0, 0)


@pytest.mark.parametrize("whole", [GOOD, CHUNKED])
def test_an_incomplete_response_is_counted_as_lost(whole: bytes) -> None:
    tally = load(lambda number: whole[:-1] + LAST)
    assert (tally.answered, tally.lost) == (0, tally.sent)
    assert tally.lost > 0


def test_latency_is_measured_from_the_scheduled_time() -> None:
    """Four connections that take 50 ms each hold 80 requests a second: at 800 most are sent long after their time."""
    tally = load(lambda _: GOOD, rate=800, pause=0.05)
    assert tally.sent < 800 * 0.2
    assert tally.p99 > 2 * 50_000
