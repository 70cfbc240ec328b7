"""An HTTP server for the site of the manual, for one reader on the same machine.

It is separate from the service: it needs no configuration and no database. It must not serve anything but the site.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from rowcall.service.manual.archive import Site


class ManualServer(ThreadingHTTPServer):
    """Listens on an address once constructed. Raises OSError if the address cannot be used."""

    daemon_threads = True

    def __init__(self, host: str, port: int, site: Site) -> None:
        self.site = site
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the first page, with the port that the system has chosen if 0 was requested."""
        host, port = self.server_address[:2]
        shown = f"[{host!s}]" if self.address_family == socket.AF_INET6 else str(host)
        return f"http://{shown}:{port}/"


class _Handler(BaseHTTPRequestHandler):
    """Serves the files of the manual to one connection."""

    server_version = "rowcall"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 30
    wbufsize = -1  # head and body in one segment
    server: ManualServer

    def do_GET(self) -> None:
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        self._send(with_body=False)

    def _send(self, *, with_body: bool) -> None:
        site = self.server.site
        page = None
        with suppress(ValueError):  # brackets without an IPv6 address
            page = site.file(unquote(urlsplit(self.path).path))
        file = page or site.not_found
        self.send_response(HTTPStatus.OK if page else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", file.content_type)
        self.send_header("Content-Length", str(len(file.body)))
        self.send_header("Content-Security-Policy", file.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        # Another version may be at the same address next time.
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        if with_body:
            self.wfile.write(file.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests of a reader are of no interest."""
