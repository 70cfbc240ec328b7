"""Inherited listening sockets: opened by systemd, or by the previous process."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rowcall.service.startup_error import StartupError

FIRST = 3
"""The first inherited descriptor: SD_LISTEN_FDS_START of sd_listen_fds(3)."""

Place = tuple[str, int]
"""Host and port, or the path of a Unix socket and 0."""


@dataclass(slots=True)
class InheritedSockets:
    """Inherited sockets by place.

    stay: the owner of the sockets keeps them open when this process ends. required: the configuration must use each
    socket.
    """

    sockets: dict[Place, list[socket.socket]] = field(default_factory=dict)
    stay: bool = False
    required: bool = False

    @classmethod
    def of(cls, sockets: Iterable[socket.socket], *, stay: bool, required: bool) -> InheritedSockets:
        """Return these sockets by place, and set them to non-blocking mode. stay, required: as for the class."""
        by_place: dict[Place, list[socket.socket]] = {}
        for sock in sockets:
            sock.setblocking(False)
            by_place.setdefault(place_of(sock), []).append(sock)
        return cls(by_place, stay, required)

    def take(self, host: str, port: int) -> list[socket.socket]:
        """Return the sockets of an address and remove them, so that no socket is used twice; empty if there are none.
        host, port: as in `Place`.
        """
        return self.sockets.pop((host, port), [])

    def finish(self) -> None:
        """Close the sockets that no address has taken. Raises StartupError if they are required."""
        if self.required and self.sockets:
            places = ", ".join(host if not port else f"{host}:{port}" for host, port in self.sockets)
            raise StartupError(
                f"systemd has opened {places}, and neither Urls nor HttpServer:Endpoints contains it: add the address "
                "of ListenStream= there, as in http://0.0.0.0:8080 or http://unix:/run/rowcall.sock"
            )
        for sockets in self.sockets.values():
            for sock in sockets:
                sock.close()
        self.sockets.clear()


def place_of(inherited: socket.socket) -> Place:
    """Return the place of a socket."""
    name = inherited.getsockname()
    return (os.fsdecode(name), 0) if inherited.family == socket.AF_UNIX else (name[0], name[1])


def from_systemd(environment: Mapping[str, str]) -> InheritedSockets:
    """Return the sockets that `LISTEN_FDS` announces to this process (sd_listen_fds(3)); none if `LISTEN_PID` names
    another process or is missing. environment: that of the process.

    Raises StartupError for an invalid `LISTEN_FDS`, and for a socket that is not a listening stream socket.
    """
    if environment.get("LISTEN_PID") != str(os.getpid()):
        return InheritedSockets()
    try:
        count = int(environment.get("LISTEN_FDS", ""))
        # Duplicates, so that a start with a changed configuration finds the sockets again.
        sockets = [socket.socket(fileno=os.dup(FIRST + number)) for number in range(count)]
    except (ValueError, OSError) as error:
        raise StartupError(f"LISTEN_FDS={environment.get('LISTEN_FDS')}: {error}") from None
    for sock in sockets:
        listens = sock.type == socket.SOCK_STREAM and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if sock.family not in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX) or not listens:
            raise StartupError(f"systemd has handed over {place_of(sock)[0]}, which is no ListenStream= with Accept=no")
    return InheritedSockets.of(sockets, stay=True, required=True)
