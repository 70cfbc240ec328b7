"""Bodies through a pipe whose other end is opened by granian, or not any more."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from rowcall.service.request_context.request_context import ClientDisconnectedError
from rowcall.service.response import streaming
from rowcall.service.response.streaming import PipeBody

MORE_THAN_A_PIPE = bytes(1_000_000)


class Left:
    """As granian is when a client of HTTP/2 leaves in the moment of the answer: the file is closed at once,
    and no reader is reported."""

    def response_file(self, _status: int, _headers: object, path: str) -> None:
        os.close(os.open(path, os.O_RDONLY))

    async def client_disconnect(self) -> None:
        await asyncio.Event().wait()


class Idle(Left):
    """Has it open, and takes nothing."""

    reading = -1

    def response_file(self, _status: int, _headers: object, path: str) -> None:
        self.reading = os.open(path, os.O_RDONLY)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "OPENED_WITHIN", 0.1)


def body_for(protocol: Any, time_limit: float) -> PipeBody:
    return PipeBody(protocol, 200, [], time_limit, "")


def test_writing_to_a_disconnected_client_fails_immediately() -> None:
    async def send() -> None:
        body = body_for(Left(), time_limit=3600)
        with pytest.raises(ClientDisconnectedError, match="has closed the connection"):
            await body.write(MORE_THAN_A_PIPE)
        await body.close()
        short = body_for(Left(), time_limit=3600)
        await short.write(b"short")
        await short.close()

    asyncio.run(asyncio.wait_for(send(), 60))


def test_writing_waits_for_a_slow_client_up_to_the_time_limit() -> None:
    async def send() -> None:
        reader = Idle()
        body = body_for(reader, time_limit=0.5)
        with pytest.raises(ClientDisconnectedError, match=r"has not read for 0\.5 s"):
            await body.write(MORE_THAN_A_PIPE)
        os.close(reader.reading)
        await body.close()

    asyncio.run(asyncio.wait_for(send(), 60))


def test_a_body_can_end_while_its_client_is_being_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks for the reader must not close the pipe that the end of the body uses."""
    monkeypatch.setattr(streaming, "FIRST_LOOK", 0.0)

    async def send() -> None:
        reader = Idle()
        before = set(os.listdir("/dev/fd"))
        body = body_for(reader, time_limit=3600)
        await body.write(b"short")
        ending = asyncio.get_running_loop().create_task(body.close())
        await asyncio.sleep(0.01)
        assert os.read(reader.reading, 100) == b"short"
        await ending
        assert os.read(reader.reading, 100) == b""
        os.close(reader.reading)
        assert set(os.listdir("/dev/fd")) == before

    asyncio.run(asyncio.wait_for(send(), 60))
