"""Errors that no code handles are logged with a traceback; expected ones are not."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

from rowcall.service.worker.loop_errors import report_loop_error


def _write(transport: asyncio.Transport) -> RuntimeError | None:
    try:
        transport.write(b"x")
    except RuntimeError as error:
        return error
    return None


def test_writing_to_a_closed_connection_logs_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def write_to_what_is_closed() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(report_loop_error)
        ours, theirs = socket.socketpair()
        with theirs:
            transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
            transport.abort()
            result = None
            for _ in range(100):
                result = result or _write(transport)
                await asyncio.sleep(0)
            assert result is not None
        loop.call_exception_handler({"message": "Fatal error on SSL protocol", "exception": result})
        assert not caplog.records
        loop.call_exception_handler({"message": "another", "exception": RuntimeError("not handled")})

    uvloop.run(write_to_what_is_closed())
    assert [record.getMessage().splitlines()[0] for record in caplog.records] == ["another"]
