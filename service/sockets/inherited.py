"""Listening sockets that were opened by somebody else: by systemd, or by the process whose place is taken."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field

from rowcall.service.startup_error import StartupError

FIRST = 3
"""SD_LISTEN_FDS_START, of sd_listen_fds(3)."""

Place = tuple[str, int]
"""Host and port, or the path of a Unix socket and 0."""


@dataclass(slots=True)
class Inherited:
    """stay: whoever opened them keeps them open when this process ends. required: each has to be listened on."""

    sockets: dict[Place, list[socket.socket]] = field(default_factory=dict)
    stay: bool = False
    required: bool = False

    @classmethod
    def of(cls, sockets: Iterable[socket.socket], *, stay: bool, required: bool) -> Inherited:
        found: dict[Place, list[socket.socket]] = {}
        for one in sockets:
            one.setblocking(False)
            found.setdefault(place_of(one), []).append(one)
        return cls(found, stay, required)

    def take(self, host: str, port: int) -> list[socket.socket]:
        """Those of an address; none of them is given twice."""
        return self.sockets.pop((host, port), [])

    def finish(self) -> None:
        """Nothing more is listened on. Raises StartupError for what would be handed over in vain."""
        if self.required and self.sockets:
            places = ", ".join(host if not port else f"{host}:{port}" for host, port in self.sockets)
            raise StartupError(
                f"systemd has opened {places}, and neither Urls nor HttpServer:Endpoints says so: write the address of "
                "ListenStream= there, as in http://0.0.0.0:8080 or http://unix:/run/rowcall.sock"
            )
        for sockets in self.sockets.values():
            for one in sockets:
                one.close()
        self.sockets.clear()


def place_of(one: socket.socket) -> Place:
    name = one.getsockname()
    return (os.fsdecode(name), 0) if one.family == socket.AF_UNIX else (name[0], name[1])


def from_systemd(environment: MutableMapping[str, str]) -> Inherited:
    """What `LISTEN_FDS` announces (sd_listen_fds(3)). Raises StartupError for what is no listening stream socket."""
    if environment.get("LISTEN_PID") != str(os.getpid()):
        return Inherited()
    try:
        count = int(environment.get("LISTEN_FDS", ""))
        # Copies: a configuration that is read again finds the sockets once more.
        sockets = [socket.socket(fileno=os.dup(FIRST + number)) for number in range(count)]
    except (ValueError, OSError) as error:
        raise StartupError(f"LISTEN_FDS={environment.get('LISTEN_FDS')}: {error}") from None
    for one in sockets:
        listens = one.type == socket.SOCK_STREAM and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if one.family not in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX) or not listens:
            raise StartupError(f"systemd has handed over {place_of(one)[0]}, which is no ListenStream= with Accept=no")
    return Inherited.of(sockets, stay=True, required=True)
