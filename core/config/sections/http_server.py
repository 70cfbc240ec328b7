"""Keys of the HTTP server. Names follow the established system; each key explains the meaning in this service."""

from __future__ import annotations

from rowcall.core.http.forwarded_headers import host_pattern
from rowcall.core.http.limits import HttpLimits
from rowcall.core.sections.declaration import (
    choice,
    flag,
    integer,
    interval,
    object_map,
    part,
    section,
    subsection,
    text,
    texts,
)
from rowcall.core.sections.keys import JsonValue


@section("HttpServer:Endpoints:<name>")
class EndpointKeys:
    """The keys of one listener."""

    url = text("Url", None, "Address with scheme, host and port.")
    protocols = choice(
        "Protocols", "Http1 Http2 Http1AndHttp2 Http3 Http1AndHttp2AndHttp3", None, "HTTP versions of this listener."
    )
    certificate_path = text("Certificate:Path", None, "PFX, PEM or CRT file.")
    certificate_key_path = text("Certificate:KeyPath", None, "PEM file of the private key.")
    certificate_password = text("Certificate:Password", None, "Password of the key or of the PFX file.", secret=True)
    certificate_subject = text("Certificate:Subject", None, "Accepted; there is no certificate store here.")
    certificate_store = text("Certificate:Store", None, "Accepted; there is no certificate store here.")
    certificate_location = text("Certificate:Location", None, "Accepted; there is no certificate store here.")
    certificate_allow_invalid = flag("Certificate:AllowInvalid", False, "Accepted; there is no certificate store here.")


@section("HttpServer", "The HTTP server. `Kestrel` is accepted as a second name of this section.")
class HttpServer:
    workers: int | None = integer(
        "Workers",
        None,
        "Number of worker processes. null: one for each processor core, or for each group of CpuAffinity.",
        minimum=1,
    )
    cpu_affinity: str | None = text(
        "CpuAffinity",
        None,
        "Processor cores of workers: `0-3,6` gives each worker one of these, `0-3;4-7` the first worker the "
        "first four and the second the others, `auto` gives each worker one of all cores. null: the system "
        "decides.",
    )
    threads: int | None = integer(
        "Threads",
        None,
        "Threads of each worker that read and write connections. null: ThreadPool:MaxCompletionPortThreads, or 1.",
        minimum=1,
    )
    engine: str = choice(
        "Engine",
        "Auto Loop Granian",
        "Auto",
        "What serves HTTP/1.1 without TLS: Auto and Loop let the event loop of the worker do it, which saves the "
        "hand-over between threads; Loop refuses HTTP/2 without TLS, which Auto leaves to granian. TLS is always "
        "granian's.",
    )
    protocols: str = choice(
        "Protocols",
        "Http1 Http2 Http1AndHttp2 Http1AndHttp2AndHttp3",
        "Http1AndHttp2",
        "HTTP versions of listeners that do not set them. HTTP/2 without TLS needs clients with prior knowledge. "
        "HTTP/3 is not supported.",
    )
    unix_socket_permissions: str | None = text(
        "UnixSocketPermissions", None, "Permissions of Unix sockets, such as 660. null: the umask decides."
    )
    endpoints: JsonValue = object_map(
        "Endpoints",
        {},
        "Named listeners with a `Url` each; if there are any, they replace Urls. Names can be chosen freely.",
        open=True,
        elements=EndpointKeys,
    )
    certificates: JsonValue = object_map(
        "Certificates",
        {},
        "Named certificates; `Default` is used by https listeners without one.",
        secret=True,
        open=True,
    )
    allowed_hosts: tuple[str, ...] = texts(
        "AllowedHosts",
        (),
        "Hosts that requests may name; `*.zone.example`: its subdomains. Other hosts get 400. An empty list: any "
        "host, also in redirects.",
        each=host_pattern,
    )
    handover_socket: str | None = text(
        "HandoverSocket",
        None,
        "Path of a Unix socket for zero-downtime restarts: a new process of the same user takes over the "
        "listening sockets of the running one. null: not possible. Linux only.",
    )
    shutdown = subsection(
        "Shutdown", "Graceful shutdown; ConnectionSettings:Pool:ShutdownTimeout limits the remaining time."
    )
    shutdown_delay: float = interval(
        "Shutdown:Delay",
        "0 seconds",
        "Time for which requests are still served while ready checks fail already, so that load balancers notice.",
    )
    close_announcement: float = interval(
        "Shutdown:ConnectionCloseTime",
        "2 seconds",
        "Time for which responses carry `Connection: close` before idle connections are closed: after a Delay, "
        "or if another process has taken over the listening sockets.",
    )
    limits = part(HttpLimits)
    server_timing: bool = flag(
        "ServerTiming",
        False,
        "Send a `Server-Timing` header with the times of waiting, running and rendering of each request.",
    )
    disable_string_reuse = flag("DisableStringReuse", False, "Accepted; no effect here.")
    allow_alternate_schemes = flag("AllowAlternateSchemes", False, "Accepted; no effect here.")
    allow_synchronous_io = flag("AllowSynchronousIO", False, "Accepted; no effect here.")
    allow_response_header_compression = flag("AllowResponseHeaderCompression", True, "Accepted; no effect here.")
    server_header: bool = flag(
        "AddServerHeader", True, "Name the server in the header `Server`; false: the header is empty."
    )
    allow_host_header_override = flag("AllowHostHeaderOverride", False, "Accepted; no effect here.")
