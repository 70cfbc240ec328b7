"""Pre-fork: worker processes are copies of a template process that has imported everything, so that they share memory
and a killed worker is replaced at once.

The template is forked from the supervisor before that has threads, connections or an event loop, and copies itself on
request over a socket pair; it ends with that socket. If the system cannot do this (`possible`), or if the template has
been killed, processes are started by exec, which differs only in the time it takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import importlib
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

_COPY = b"c"
_EXIT_CODE = b"e"
_QUESTION = struct.Struct("!cI")
_ANSWER = struct.Struct("!q")
_RUNNING = 1 << 40
_MOST_DESCRIPTORS = 250
"""Descriptors in one message (SCM_MAX_FD of Linux is 253)."""


def possible() -> bool:
    """Whether pre-fork works here. It does not on macOS: its system libraries do not survive a fork."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


def single_threaded() -> bool:
    """Whether the process has one thread. A copy would have the locks of other threads, but not the threads."""
    return len(os.listdir("/proc/self/task")) == 1


def copies(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Serve the requests of the supervisor in the template process: fork copies, and report their exit codes.

    channel: the template's end of the socket pair. This returns only in a copy, with the payload and the descriptors of
    the request that created it. When the socket of the supervisor ends, the template ends: raises SystemExit.
    """
    gc.collect()
    # A garbage collection would write to every object, and so end the sharing of memory.
    gc.freeze()
    while True:
        kind, payload, descriptors = _receive(channel)
        if kind == _COPY:
            answer = os.fork()
            if not answer:
                channel.close()
                return payload, descriptors
            for descriptor in descriptors:
                os.close(descriptor)
        else:
            ended_pid, status = os.waitpid(int(payload), os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended_pid else _RUNNING
        channel.sendall(_ANSWER.pack(answer))


def _receive(channel: socket.socket) -> tuple[bytes, bytes, list[int]]:
    """Return kind, payload and descriptors of the next request. Raises SystemExit when the supervisor has ended."""
    head, descriptors, _, _ = socket.recv_fds(channel, _QUESTION.size, _MOST_DESCRIPTORS)
    if len(head) < _QUESTION.size:
        channel.close()
        raise SystemExit(0)
    kind, size = _QUESTION.unpack(head)
    payload = channel.recv(size, socket.MSG_WAITALL)
    return kind, payload, descriptors


class Template:
    """The template process as seen by the supervisor."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._one_by_one = threading.Lock()

    def copy(self, payload: bytes, descriptors: Sequence[int] = ()) -> int:
        """Return the process id of a new copy, which gets the payload and duplicates of the descriptors. Raises OSError
        if the template has ended.
        """
        return self._ask(_COPY, payload, descriptors)

    def exit_code(self, pid: int) -> int | None:
        """Return the exit code of a copy that has ended, negative for the signal that ended it; None while it runs.
        Raises OSError if the template has ended.

        After it has returned a code, it must not be called for this copy again: the system has forgotten the process,
        and the template would end with an error.
        """
        code = self._ask(_EXIT_CODE, str(pid).encode())
        return None if code == _RUNNING else code

    def close(self) -> None:
        """Close the socket, which ends the template."""
        self._channel.close()

    def _ask(self, kind: bytes, payload: bytes, descriptors: Sequence[int] = ()) -> int:
        """Send a request, wait for its answer and return it: the process id of the copy, or the exit code (`_RUNNING`:
        the copy has not ended). Raises OSError if the template has ended.

        kind: `_COPY` or `_EXIT_CODE`. payload: of a copy, or the process id in decimal digits. descriptors: duplicates
        of them are sent with it.
        """
        with self._one_by_one:
            socket.send_fds(self._channel, [_QUESTION.pack(kind, len(payload)), payload], list(descriptors))
            answer = self._channel.recv(_ANSWER.size, socket.MSG_WAITALL)
        if len(answer) < _ANSWER.size:
            raise ConnectionError("the template of the workers is gone")
        code: int = _ANSWER.unpack(answer)[0]
        return code


class Copy:
    """A running copy of the template with the process id `pid`, with the part of the interface of
    `asyncio.subprocess.Process` that the supervisor uses.
    """

    @classmethod
    async def start(cls, template: Template, descriptors: Sequence[int]) -> Copy:
        """Start a copy and return it. It has these descriptors under the same numbers. Raises OSError if the template
        has ended."""
        payload = " ".join(map(str, descriptors)).encode()
        # In a thread: the template may still be importing.
        return cls(template, await asyncio.to_thread(template.copy, payload, descriptors))

    def __init__(self, template: Template, pid: int) -> None:
        self._template = template
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)
        self._ended = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(self._descriptor, self._end)

    def _end(self) -> None:
        """Store the exit code of the copy for `wait`. Called by the event loop when the process has ended."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        try:
            code = self._template.exit_code(self.pid)
        except OSError:
            code = None
        # If the template has ended, only the process that adopted the copy knows its exit code.
        self._ended.set_result(-1 if code is None else code)

    async def wait(self) -> int:
        """Return the exit code when the copy has ended; -1 if only the system knows it, as the template has ended
        too.
        """
        code: int = await asyncio.shield(self._ended)
        return code

    def kill(self) -> None:
        """Send SIGKILL to the copy, unless it has ended."""
        if not self._ended.done():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)


def name_process(name: str) -> None:
    """Set the name that `top` and `ps -o comm` show, at most 15 characters; on Linux."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)


def take_places(descriptors: Sequence[int], places: Sequence[int]) -> None:
    """Move open descriptors to the numbers that they have in the process that sent them. places: these numbers, in the
    same order.
    """
    aside = [fcntl.fcntl(item, fcntl.F_DUPFD_CLOEXEC, max(places, default=0) + 1) for item in descriptors]
    for item in descriptors:
        os.close(item)
    for item, place in zip(aside, places, strict=True):
        os.dup2(item, place, inheritable=False)
        os.close(item)


def forked_template(prepare: str, *libraries: str) -> Template | None:
    """Fork the template process; it imports the module `prepare`, and each copy runs its `main(descriptor)`.

    prepare: name of the module. libraries: names of further modules to import in the template, which each copy would
    otherwise import itself.

    Returns None if there cannot be a template.
    """
    if not possible() or not single_threaded():
        return None
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    if not os.fork():
        ours.close()
        _be_template(theirs, prepare, libraries)
    theirs.close()
    return Template(ours)


def _be_template(channel: socket.socket, prepare: str, libraries: Sequence[str]) -> NoReturn:
    """Become the template process: import the modules, fork copies on request, and run `prepare.main` in each copy.
    Never returns. channel: the template's end of the socket pair. prepare, libraries: as for `forked_template`.
    """
    # A Ctrl-C is for the supervisor, which stops the workers in order.
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    name_process("rowcall-prefork")
    module = importlib.import_module(prepare)
    for library in libraries:
        importlib.import_module(library)
    if not single_threaded():
        os._exit(0)
    try:
        payload, descriptors = copies(channel)
    except SystemExit:
        os._exit(0)
    os.setsid()
    places = [int(place) for place in payload.split()]
    take_places(descriptors, places)
    code = 0
    try:
        module.main(places[0])
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    sys.stdout.flush()
    # Freeing all objects would write to the shared memory once more, without use.
    os._exit(code)
