"""The load generator counts what came back right, wrong and not at all; it is driven against real sockets."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bench.load import Generator, Tally, Target, body_of, raw_request

GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\n\r\n"

Answer = Callable[[int], bytes | None]
"""The bytes for the n-th request of a connection; None closes the connection instead."""


@contextmanager
def serving(answer: Answer) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener, answer), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def accept(listener: socket.socket, answer: Answer) -> None:
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=converse, args=(peer, answer), daemon=True).start()


def converse(peer: socket.socket, answer: Answer) -> None:
    number = 0
    with peer:
        try:
            while peer.recv(65536):
                response = answer(number)
                if response is None:
                    return
                peer.sendall(response)
                number += 1
        except ConnectionError:
            return


def load(answer: Answer, rate: float | None = None) -> Tally:
    with serving(answer) as port:
        target = Target("127.0.0.1", port, raw_request("GET", "/", "test", b""), b"ok")
        return Generator(target, 4, rate).run(0.2)


@pytest.mark.parametrize("response", [GOOD, CHUNKED])
def test_every_request_is_answered_by_a_good_service(response: bytes) -> None:
    tally = load(lambda _: response)
    assert tally.sent == tally.answered == len(tally.latencies) > 0
    assert (tally.wrong, tally.lost) == (0, 0)


def test_another_body_is_wrong() -> None:
    tally = load(lambda number: GOOD.replace(b"ok", b"ko") if number == 1 else GOOD)
    assert tally.wrong == 4


def test_another_status_is_wrong() -> None:
    tally = load(lambda number: GOOD.replace(b"200 OK", b"503 No") if number == 1 else GOOD)
    assert tally.wrong == 4


def test_an_answer_given_twice_is_wrong() -> None:
    assert load(lambda number: GOOD + GOOD if number == 0 else GOOD).wrong > 0


def test_a_request_on_a_connection_that_closes_is_lost() -> None:
    tally = load(lambda number: None if number == 2 else GOOD)
    assert tally.lost > 0
    assert tally.sent == tally.answered + tally.lost


def test_a_given_rate_is_not_exceeded() -> None:
    assert 0 < load(lambda _: GOOD, rate=100).sent <= 21


@pytest.mark.parametrize("whole", [GOOD, CHUNKED])
def test_a_response_is_whole_only_with_its_last_byte(whole: bytes) -> None:
    assert body_of(whole) == b"ok"
    assert all(body_of(whole[:size]) is None for size in range(len(whole)))
