"""`python -m bench.stalled_bodies`: a hundred clients that announce bodies and do not complete them, and their effect
on other requests of the same worker: p99 of a small request without and with them, and the worker's memory.

Some send to an endpoint that they may call, some to an endpoint that responds 401, some only a part of their headers.
"""

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time

from bench.one_worker import SMALL, Latency, OneWorker
from bench.postgres import temporary_server
from bench.services import free_port

SQL = (
    SMALL
    + """
create function taken(_a text) returns int language sql as 'select length(_a)';
comment on function taken(text) is e'HTTP POST\\nallow_anonymous';
create function closed(_a text) returns int language sql as 'select length(_a)';
comment on function closed(text) is e'HTTP POST\\nauthorize nurse';
"""
)
SIZE = 5_000_000


def stall(port: int, number: int, pause: float) -> None:
    """Send incomplete requests endlessly; connect again whenever the service closes the connection."""
    path = "/api/closed" if number % 3 == 1 else "/api/taken"
    head = f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: {SIZE}\r\n\r\n"
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 60) as connection:
            if number % 3 == 2:
                connection.sendall(head.encode()[:40])
            else:
                connection.sendall(head.encode() + b'{"a":"' + b"x" * (SIZE - 100))
            while connection.recv(65_536):
                pass
        time.sleep(pause)


def clients(port: int, count: int, pause: float) -> None:
    """Run the clients. They represent other machines, so they use only processor time that the service leaves."""
    os.nice(19)
    for number in range(count):
        threading.Thread(target=stall, args=(port, number, pause), daemon=True).start()
    sys.stdin.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument(
        "--pause", type=float, default=10.0, help="seconds until a disconnected client connects again; 1: a flood"
    )
    parser.add_argument("--port", type=int, help="run only the clients, for this port")
    arguments = parser.parse_args()
    if arguments.port:
        clients(arguments.port, arguments.clients, arguments.pause)
        return
    with temporary_server("auto") as server:
        server.psql("-c", "create database bench", database="postgres")
        server.psql(stdin=SQL)
        port = free_port()
        service = OneWorker(server, port, "Auth:CookieAuth=true")
        small = Latency(port)
        small.p99(2.0)
        alone = small.p99(arguments.seconds / 2)
        command = [
            sys.executable,
            "-m",
            "bench.stalled_bodies",
            "--port",
            str(port),
            "--clients",
            str(arguments.clients),
            "--pause",
            str(arguments.pause),
        ]
        stalled = subprocess.Popen(command, stdin=subprocess.PIPE)
        most = 0
        done = threading.Event()
        thread = threading.Thread(target=small.measure_until, args=(done,))
        thread.start()
        until = time.monotonic() + arguments.seconds
        while time.monotonic() < until:
            most = max(most, service.memory())
            time.sleep(0.05)
        done.set()
        thread.join()
        stalled.kill()
        service.stop()
    meanwhile = small.last_p99()
    print(
        f"{arguments.clients} stalled clients: p99 {alone:.2f} ms without them, {meanwhile:.2f} ms with them "
        f"({meanwhile / alone:.1f}x); worker {most / 1e6:.0f} MB at most"
    )


if __name__ == "__main__":
    main()
