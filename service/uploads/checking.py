"""Check of files by a command that the operator configures, before a handler takes them, for example a virus scanner.

The command reads the file from its standard input. Exit status 0 means that the file passes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal

from rowcall.core.errors.problems import Problem
from rowcall.service.uploads.spool import SpooledFile

log = logging.getLogger("rowcall")

SECONDS = 300.0
"""Time limit for one file."""


async def passes(command: tuple[str, ...], stored: SpooledFile) -> bool:
    """Run the command with the file as its standard input. Return whether it exited with 0, which means that the file
    passes.

    Raises:
        Problem: 500, the command cannot be run or takes longer than `SECONDS`; no file is taken unchecked.
    """
    stored.stored.seek(0)
    try:
        process = await _start(command, stored)
    except OSError as error:
        log.error(
            "Service:UploadOptions:CheckCommands: %s cannot be run: %s; files to check are refused",
            command[0],
            error.strerror,
        )
        raise Problem(500, "uploaded files cannot be checked; the log of the service has the reason") from None
    try:
        async with asyncio.timeout(SECONDS):
            status = await process.wait()
    except TimeoutError:
        log.error(
            "Service:UploadOptions:CheckCommands: %s has not ended within %g s; its file is refused",
            command[0],
            SECONDS,
        )
        raise Problem(500, "uploaded files cannot be checked; the log of the service has the reason") from None
    finally:
        await _end(process)
    return status == 0


async def _start(command: tuple[str, ...], stored: SpooledFile) -> asyncio.subprocess.Process:
    """Start the command. If the caller is cancelled meanwhile, the command ends with all that it has started. Raises
    `OSError` if it cannot be run.

    asyncio ends only the process itself when it is cancelled while it starts one.
    """
    start = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            stdin=stored.stored,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            # The command and its children form a group, which is ended as a whole.
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(start)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _end(await start)
        raise


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process and its group, unless the process has exited."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
