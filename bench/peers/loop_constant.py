"""rowcall's HTTP/1.1 server with constant responses: the limit of the HTTP side alone, as `granian_constant.py` is for
granian. `BENCH_PORT` is the port.
"""

import asyncio
import os
from typing import Any

import uvloop
from granian_constant import HEADERS, RESPONSES  # type: ignore[import-not-found]  # beside this file

from rowcall.ext.http1.connection import Connection, Http1Server


def handle(scope: Any, protocol: Any) -> None:
    query = scope.query_string
    body = RESPONSES[f"{scope.path}?{query}" if query else scope.path]
    if scope.method == "POST":
        protocol().add_done_callback(lambda _: protocol.response_bytes(200, HEADERS, body))
    else:
        protocol.response_bytes(200, HEADERS, body)


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = Http1Server(
        loop,
        handle,
        lambda status, detail: b"",
        lambda *_: None,
        None,
        ConnectionError,
        lambda _: None,
        head_limit=40_960,
        line_limit=0,
        body_buffer=65_536,
        keep_alive=True,
        idle_seconds=60.0,
        unread_seconds=60.0,
        gather_seconds=0.00005,
        gather_running=16,
    )

    def connection() -> Any:
        return Connection(server)

    accepting = await loop.create_server(connection, "127.0.0.1", int(os.environ["BENCH_PORT"]))
    await accepting.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
