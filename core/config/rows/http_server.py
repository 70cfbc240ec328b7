"""Keys of the HTTP server. Names follow the established system; each row explains the meaning in this service."""

from rowcall.core.sections.keys import Key, KeyType, choice, flag, integer, interval, section, text, texts

_ENDPOINT = "HttpServer:Endpoints:<name>:"
_CERTIFICATE = _ENDPOINT + "Certificate:"
_LONG = 2**63 - 1
_UNSIGNED = 2**32 - 1
_LARGEST_FRAME = 2**24 - 1
"""Largest size of an HTTP/2 frame in bytes (RFC 9113, 6.5.2)."""

ROWS: tuple[Key, ...] = (
    section("HttpServer", "The HTTP server. `Kestrel` is accepted as a second name of this section."),
    integer(
        "HttpServer:Workers",
        None,
        "Number of worker processes. null: one for each processor core, or for each group of CpuAffinity.",
        minimum=1,
    ),
    text(
        "HttpServer:CpuAffinity",
        None,
        "Processor cores of workers: `0-3,6` gives each worker one of these, `0-3;4-7` the first worker the first four "
        "and the second the others, `auto` gives each worker one of all cores. null: the system decides.",
    ),
    integer(
        "HttpServer:Threads",
        None,
        "Threads of each worker that read and write connections. null: ThreadPool:MaxCompletionPortThreads, or 1.",
        minimum=1,
    ),
    choice(
        "HttpServer:Engine",
        "Auto Loop Granian",
        "Auto",
        "What serves HTTP/1.1 without TLS: Auto and Loop let the event loop of the worker do it, which saves the "
        "hand-over between threads; Loop refuses HTTP/2 without TLS, which Auto leaves to granian. TLS is always "
        "granian's.",
    ),
    choice(
        "HttpServer:Protocols",
        "Http1 Http2 Http1AndHttp2 Http1AndHttp2AndHttp3",
        "Http1AndHttp2",
        "HTTP versions of listeners that do not set them. HTTP/2 without TLS needs clients with prior knowledge. "
        "HTTP/3 is not supported.",
    ),
    text(
        "HttpServer:UnixSocketPermissions",
        None,
        "Permissions of Unix sockets, such as 660. null: the umask decides.",
    ),
    Key(
        "HttpServer:Endpoints",
        KeyType.OBJECT_MAP,
        {},
        "Named listeners with a `Url` each; if there are any, they replace Urls. Names can be chosen freely.",
        open=True,
    ),
    text(_ENDPOINT + "Url", None, "Address with scheme, host and port."),
    choice(
        _ENDPOINT + "Protocols",
        "Http1 Http2 Http1AndHttp2 Http3 Http1AndHttp2AndHttp3",
        None,
        "HTTP versions of this listener.",
    ),
    text(_CERTIFICATE + "Path", None, "PFX, PEM or CRT file."),
    text(_CERTIFICATE + "KeyPath", None, "PEM file of the private key."),
    text(_CERTIFICATE + "Password", None, "Password of the key or of the PFX file.", secret=True),
    text(_CERTIFICATE + "Subject", None, "Accepted; there is no certificate store here."),
    text(_CERTIFICATE + "Store", None, "Accepted; there is no certificate store here."),
    text(_CERTIFICATE + "Location", None, "Accepted; there is no certificate store here."),
    flag(_CERTIFICATE + "AllowInvalid", False, "Accepted; there is no certificate store here."),
    Key(
        "HttpServer:Certificates",
        KeyType.OBJECT_MAP,
        {},
        "Named certificates; `Default` is used by https listeners without one.",
        open=True,
        secret=True,
    ),
    texts(
        "HttpServer:AllowedHosts",
        (),
        "Hosts that requests may name; `*.zone.example`: its subdomains. Other hosts get 400. An empty list: any host, "
        "also in redirects.",
    ),
    text(
        "HttpServer:HandoverSocket",
        None,
        "Path of a Unix socket for zero-downtime restarts: a new process of the same user takes over the listening "
        "sockets of the running one. null: not possible. Linux only.",
    ),
    section(
        "HttpServer:Shutdown", "Graceful shutdown; ConnectionSettings:Pool:ShutdownTimeout limits the remaining time."
    ),
    interval(
        "HttpServer:Shutdown:Delay",
        "0 seconds",
        "Time for which requests are still served while ready checks fail already, so that load balancers notice.",
    ),
    interval(
        "HttpServer:Shutdown:ConnectionCloseTime",
        "2 seconds",
        "Time for which responses carry `Connection: close` before idle connections are closed: after a Delay, or if "
        "another process has taken over the listening sockets.",
    ),
    section("HttpServer:Limits", "Limits of requests and connections; null: the default of the server."),
    integer(
        "HttpServer:Limits:MaxConcurrentConnections",
        None,
        "Maximum number of open connections of an address, divided equally among the workers; further ones wait. null: "
        "as the limit of open files allows (`ulimit -n`), after databases, streams and files have got theirs.",
        minimum=1,
    ),
    integer(
        "HttpServer:Limits:MaxConcurrentUpgradedConnections",
        None,
        "Accepted; no effect here: connections are never upgraded.",
    ),
    integer(
        "HttpServer:Limits:MaxRequestBodySize",
        None,
        "Maximum size of a request body in bytes; larger ones get 413. null: 30000000.",
        maximum=_LONG,
    ),
    integer(
        "HttpServer:Limits:MaxSignInBodySize",
        65_536,
        "The same for logins and token refreshes, which are open to anonymous callers.",
        minimum=1,
    ),
    integer(
        "HttpServer:Limits:MaxUrlEncodedBodySize",
        2_097_152,
        "The same for bodies of the type `application/x-www-form-urlencoded` whose fields the service reads; at least "
        "65536. MaxRequestBodySize applies too.",
        minimum=65536,
        maximum=_LONG,
    ),
    integer(
        "HttpServer:Limits:MaxBufferedBodies",
        33_554_432,
        "Bytes of large bodies that a worker holds at the same time; further ones get 503. A single body may be as "
        "large as MaxRequestBodySize.",
        minimum=65536,
        maximum=_LONG,
    ),
    integer(
        "HttpServer:Limits:MinRequestBodyDataRate",
        240,
        "Minimum average rate of a body in bytes per second; slower ones get 408. 0: no minimum.",
    ),
    interval(
        "HttpServer:Limits:MinRequestBodyDataRateGracePeriod",
        "5 seconds",
        "Time after which MinRequestBodyDataRate applies.",
    ),
    interval(
        "HttpServer:Limits:RequestBodyTimeout",
        "5 minutes",
        "Maximum time for a body to arrive completely; slower ones get 408. 0: no limit.",
    ),
    integer(
        "HttpServer:Limits:MaxRequestBufferSize",
        None,
        "Size of one read of an HTTP/1 connection in bytes; large reads make large bodies faster. At least the limits "
        "of a request head, at most 1048576. null: 262144 if uploads are enabled, else the limits of a request head.",
        minimum=1,
        maximum=_LONG,
    ),
    integer(
        "HttpServer:Limits:MaxRequestHeaderCount",
        None,
        "Maximum number of headers of a request; more get 431. null: 100, which is also the largest value.",
        minimum=1,
    ),
    integer(
        "HttpServer:Limits:MaxRequestHeadersTotalSize",
        None,
        "Maximum size of all headers in bytes; more get 431. null: 32768, plus what the request line leaves of its "
        "limit.",
        minimum=1,
    ),
    integer(
        "HttpServer:Limits:MaxRequestLineSize",
        None,
        "Maximum size of the request line in bytes; more get 414. null: 8192, plus what the headers leave of their "
        "limit.",
        minimum=1,
    ),
    integer(
        "HttpServer:Limits:MaxResponseBufferSize",
        None,
        "Bytes of a response that are buffered for each HTTP/2 stream; null: 409600.",
        minimum=4096,
        maximum=_UNSIGNED,
    ),
    interval(
        "HttpServer:Limits:KeepAliveTimeout",
        None,
        "Time for which an idle connection stays open. If RequestHeadersTimeout is set, it applies to both. 0: close "
        "after each response.",
    ),
    interval(
        "HttpServer:Limits:RequestHeadersTimeout",
        None,
        "Time for the headers of a request to arrive; then the connection is closed. null: KeepAliveTimeout, or "
        "00:00:30.",
    ),
    section("HttpServer:Limits:Http2", "HTTP/2."),
    integer(
        "HttpServer:Limits:Http2:MaxStreamsPerConnection", None, "Streams of a connection; null is 100.", minimum=1
    ),
    integer("HttpServer:Limits:Http2:HeaderTableSize", None, "Accepted; no effect here."),
    integer(
        "HttpServer:Limits:Http2:MaxFrameSize",
        None,
        "Bytes of a frame's payload; null is 16384.",
        minimum=16384,
        maximum=_LARGEST_FRAME,
    ),
    integer(
        "HttpServer:Limits:Http2:MaxRequestHeaderFieldSize",
        None,
        "Bytes of all headers of a request; null: as for HTTP/1.1.",
        minimum=1,
    ),
    integer(
        "HttpServer:Limits:Http2:InitialConnectionWindowSize",
        None,
        "Window of a connection; null is 1048576.",
        minimum=65_535,
    ),
    integer(
        "HttpServer:Limits:Http2:InitialStreamWindowSize", None, "Window of a stream; null is 786432.", minimum=65_535
    ),
    integer(
        "HttpServer:Limits:Http2:MaxReadFrameSize",
        None,
        "Second name of MaxFrameSize.",
        minimum=16384,
        maximum=_LARGEST_FRAME,
    ),
    interval("HttpServer:Limits:Http2:KeepAlivePingDelay", None, "Idle time before a ping; null sends none."),
    interval("HttpServer:Limits:Http2:KeepAlivePingTimeout", None, "Time for the reply to a ping; null: 00:00:20."),
    text("HttpServer:Limits:Http2:KeepAlivePingPolicy", None, "Accepted; no effect here."),
    section("HttpServer:Limits:Http3", "HTTP/3, which this server does not support; its keys are accepted."),
    integer("HttpServer:Limits:Http3:MaxRequestHeaderFieldSize", None, "Bytes of a header field; no effect here."),
    flag(
        "HttpServer:ServerTiming",
        False,
        "Send a `Server-Timing` header with the times of waiting, running and rendering of each request.",
    ),
    flag("HttpServer:DisableStringReuse", False, "Accepted; no effect here."),
    flag("HttpServer:AllowAlternateSchemes", False, "Accepted; no effect here."),
    flag("HttpServer:AllowSynchronousIO", False, "Accepted; no effect here."),
    flag("HttpServer:AllowResponseHeaderCompression", True, "Accepted; no effect here."),
    flag("HttpServer:AddServerHeader", True, "Name the server in the header `Server`; false: the header is empty."),
    flag("HttpServer:AllowHostHeaderOverride", False, "Accepted; no effect here."),
)
