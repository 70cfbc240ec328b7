"""Keys of the HTTP server. Names follow the established system; each row explains the meaning in this service."""

from rowcall.core.config.keys import Key, KeyType, choice, flag, integer, interval, section, text, texts

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
        "Worker processes. null starts one for each processor core that there is, or that CpuAffinity names.",
    ),
    text(
        "HttpServer:CpuAffinity",
        None,
        "Cores that workers are kept on: `0-3,6` gives each worker one of these, `0-3;4-7` the first worker the first "
        "four and the second the others, `auto` each worker one of all that there are. null leaves it to the system.",
    ),
    integer(
        "HttpServer:Threads",
        None,
        "Threads of each worker that read and write connections. null: ThreadPool:MaxCompletionPortThreads, or 1.",
    ),
    choice(
        "HttpServer:Protocols",
        "Http1 Http2 Http1AndHttp2 Http1AndHttp2AndHttp3",
        "Http1AndHttp2",
        "What listeners speak that do not say so themselves. Http2 without TLS is spoken to clients that know it. "
        "There is no HTTP/3.",
    ),
    text(
        "HttpServer:UnixSocketPermissions",
        None,
        "Permissions of Unix sockets, such as 660. null leaves them to the umask.",
    ),
    Key(
        "HttpServer:Endpoints",
        KeyType.OBJECT_MAP,
        {},
        "Named listeners with a `Url` each; when there are any, they replace Urls. Names are free.",
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
        "Named certificates; `Default` serves https listeners that name none.",
        open=True,
        secret=True,
    ),
    texts(
        "HttpServer:AllowedHosts",
        (),
        "Hosts that requests may name, `*.zone.example` for those below one; others give 400. An empty list is any, "
        "also in what redirects lead to.",
    ),
    text(
        "HttpServer:HandoverSocket",
        None,
        "Path of a Unix socket over which a new process of this user takes over the listening sockets of the one that "
        "runs, without a refused connection. null: none can. Linux only.",
    ),
    section("HttpServer:Shutdown", "How the service stops; ConnectionSettings:Pool:ShutdownTimeout limits the rest."),
    interval(
        "HttpServer:Shutdown:Delay",
        "0 seconds",
        "How long requests are served as ever while ready checks fail already, for load balancers to notice.",
    ),
    interval(
        "HttpServer:Shutdown:GoodbyeTime",
        "2 seconds",
        "After a Delay, and when others go on with the listening sockets: how long answers carry `Connection: close` "
        "before idle connections are closed.",
    ),
    section("HttpServer:Limits", "Limits of requests and connections; null keeps the server's own default."),
    integer(
        "HttpServer:Limits:MaxConcurrentConnections",
        None,
        "Most open connections of an address, shared equally by the workers; more wait. null: as many as "
        "the system has descriptors for (`ulimit -n`), less those that databases, streams and files need.",
    ),
    integer("HttpServer:Limits:MaxConcurrentUpgradedConnections", None, "Accepted; no effect here: nothing upgrades."),
    integer(
        "HttpServer:Limits:MaxRequestBodySize",
        None,
        "Bytes of a request body; null is 30000000. More gives 413.",
        maximum=_LONG,
    ),
    integer(
        "HttpServer:Limits:MaxSignInBodySize",
        65_536,
        "The same for logins and the refresh of tokens, which anybody can call.",
    ),
    integer(
        "HttpServer:Limits:MaxUrlEncodedBodySize",
        2_097_152,
        "The same for bodies of the type `application/x-www-form-urlencoded` whose fields the service reads; at least "
        "65536. MaxRequestBodySize applies too.",
        maximum=_LONG,
    ),
    integer(
        "HttpServer:Limits:MaxBufferedBodies",
        33_554_432,
        "Bytes of large bodies that a worker holds at the same time; the next one is answered 503. One that is alone "
        "may be as large as MaxRequestBodySize.",
        maximum=_LONG,
    ),
    integer(
        "HttpServer:Limits:MinRequestBodyDataRate",
        240,
        "Bytes a second, on average, that a body has to arrive with; slower gives 408. 0: none is too slow.",
    ),
    interval(
        "HttpServer:Limits:MinRequestBodyDataRateGracePeriod",
        "5 seconds",
        "Time for which MinRequestBodyDataRate does not count.",
    ),
    interval(
        "HttpServer:Limits:RequestBodyTimeout",
        "5 minutes",
        "Time for a body to arrive as a whole; longer gives 408. 0: as long as it takes.",
    ),
    integer(
        "HttpServer:Limits:MaxRequestBufferSize",
        None,
        "Bytes of a connection of HTTP/1 that are read at once; large bodies come faster in large pieces. Not less"
        " than the limits of a head, nor more than 1048576. null: 262144 where uploads are enabled, else what the"
        " limits of a head come to.",
        maximum=_LONG,
    ),
    integer(
        "HttpServer:Limits:MaxRequestHeaderCount",
        None,
        "Headers of a request, at most and by default 100. More gives 431.",
    ),
    integer(
        "HttpServer:Limits:MaxRequestHeadersTotalSize",
        None,
        "Bytes of all headers; more gives 431. null: 32768 together with what the request line leaves.",
    ),
    integer(
        "HttpServer:Limits:MaxRequestLineSize",
        None,
        "Bytes of the request line; more gives 414. null: 8192 together with what the headers leave.",
    ),
    integer(
        "HttpServer:Limits:MaxResponseBufferSize",
        None,
        "Bytes of answer held for each stream of HTTP/2; null is 409600.",
        maximum=_UNSIGNED,
    ),
    interval(
        "HttpServer:Limits:KeepAliveTimeout",
        None,
        "How long an idle connection stays open, unless RequestHeadersTimeout is set, which then holds for both. "
        "0 closes after each answer.",
    ),
    interval(
        "HttpServer:Limits:RequestHeadersTimeout",
        None,
        "Time for the headers of a request to arrive; the connection is closed after it. null: KeepAliveTimeout, or "
        "00:00:30.",
    ),
    section("HttpServer:Limits:Http2", "HTTP/2."),
    integer("HttpServer:Limits:Http2:MaxStreamsPerConnection", None, "Streams of a connection; null is 100."),
    integer("HttpServer:Limits:Http2:HeaderTableSize", None, "Accepted; no effect here."),
    integer(
        "HttpServer:Limits:Http2:MaxFrameSize",
        None,
        "Bytes of a frame's payload; null is 16384.",
        maximum=_LARGEST_FRAME,
    ),
    integer(
        "HttpServer:Limits:Http2:MaxRequestHeaderFieldSize",
        None,
        "Bytes of all headers of a request; null: as for HTTP/1.1.",
    ),
    integer("HttpServer:Limits:Http2:InitialConnectionWindowSize", None, "Window of a connection; null is 1048576."),
    integer("HttpServer:Limits:Http2:InitialStreamWindowSize", None, "Window of a stream; null is 786432."),
    integer("HttpServer:Limits:Http2:MaxReadFrameSize", None, "Second name of MaxFrameSize.", maximum=_LARGEST_FRAME),
    interval("HttpServer:Limits:Http2:KeepAlivePingDelay", None, "Idle time before a ping; null sends none."),
    interval("HttpServer:Limits:Http2:KeepAlivePingTimeout", None, "Time for the answer to a ping; null is 00:00:20."),
    text("HttpServer:Limits:Http2:KeepAlivePingPolicy", None, "Accepted; no effect here."),
    section("HttpServer:Limits:Http3", "HTTP/3, which this server does not speak; its keys are accepted."),
    integer("HttpServer:Limits:Http3:MaxRequestHeaderFieldSize", None, "Bytes of a header field; no effect here."),
    flag(
        "HttpServer:ServerTiming",
        False,
        "Tell in a `Server-Timing` header how long each request has waited, run and been rendered.",
    ),
    flag("HttpServer:DisableStringReuse", False, "Accepted; no effect here."),
    flag("HttpServer:AllowAlternateSchemes", False, "Accepted; no effect here."),
    flag("HttpServer:AllowSynchronousIO", False, "Accepted; no effect here."),
    flag("HttpServer:AllowResponseHeaderCompression", True, "Accepted; no effect here."),
    flag("HttpServer:AddServerHeader", True, "Name the server in the header `Server`; false sends it empty."),
    flag("HttpServer:AllowHostHeaderOverride", False, "Accepted; no effect here."),
)
