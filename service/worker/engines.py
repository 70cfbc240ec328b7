"""Which HTTP server serves a listener (`HttpServer:Engine`)."""

from __future__ import annotations

from rowcall.service.options.worker import HttpOptions
from rowcall.service.request_context.protocols import Handle
from rowcall.service.sockets.listeners import Listener
from rowcall.service.worker.http_server import HttpServer
from rowcall.service.worker.loop_server import LoopServer


def server_for(
    handle: Handle, listener: Listener, options: HttpOptions, *, problem_types: bool
) -> HttpServer | LoopServer:
    """The server in the event loop for HTTP/1.1 without TLS, unless granian is to serve everything."""
    if options.engine == "Granian" or listener.secure or listener.protocols == "2":
        return HttpServer(handle, listener, options)
    http2 = listener.protocols == "auto" and options.engine == "Auto"
    return LoopServer(handle, listener, options, problem_types=problem_types, http2=http2)
