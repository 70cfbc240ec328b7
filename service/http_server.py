"""granian inside a worker: one listener on a socket that the supervisor opened.

The supervisor keeps the sockets, so connections that arrive while a worker is being replaced wait in the queue of its
socket instead of being refused.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from granian._granian import SocketHolder
from granian.constants import Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from rowcall.service.edition import HttpOptions

log = logging.getLogger("rowcall.http")

BACKLOG = 4096


class _InheritedServer(Server):
    """granian's embedded server on a listener that is open already."""

    def __init__(self, listener_fd: int, **options: Any) -> None:
        super().__init__(**options)
        self._listener_fd = listener_fd

    def _init_shared_socket(self) -> None:
        holder: Any = SocketHolder
        self._ssp: Any = None
        self._shd: Any = holder(self._listener_fd, False, BACKLOG)
        self._sfd: Any = self._listener_fd


class HttpServer:
    """Serves an RSGI application until stopped."""

    def __init__(self, application: Any, listener_fd: int, options: HttpOptions) -> None:
        tls: dict[str, Any] = {}
        if options.tls_certificate is not None and options.tls_key is not None:
            tls = {
                "ssl_cert": Path(options.tls_certificate),
                "ssl_key": Path(options.tls_key),
                "ssl_key_password": options.tls_password,
            }
        self._server: Any = _InheritedServer(
            listener_fd,
            target=application,
            interface=Interfaces.RSGI,
            websockets=False,
            log_enabled=False,
            http1_settings=HTTP1Settings(header_read_timeout=round(options.header_timeout * 1000)),
            **tls,
        )
        self._serving: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to accept; does nothing when it does already."""
        if self._serving is None:
            self._serving = asyncio.get_running_loop().create_task(self._server.serve())

    async def stop(self, seconds: float) -> bool:
        """Refuses what is new at once and waits for what runs. False when the time was too short."""
        if self._serving is None:
            return True
        self._server.stop()
        done, _ = await asyncio.wait({self._serving}, timeout=seconds)
        return bool(done)
