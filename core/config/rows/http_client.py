"""Keys of outgoing requests: HTTP types, and the HTTP client."""

from rowcall.core.sections.keys import Key, flag, integer, interval, section, text, texts

_P = "Service:HttpClientOptions:"

ROWS: tuple[Key, ...] = (
    section(
        "Service:HttpClientOptions",
        "HTTP types (composite types that represent outgoing requests), and the HTTP client of all outgoing requests.",
    ),
    flag(_P + "Enabled", False, "Send the requests of HTTP types."),
    text(_P + "ResponseStatusCodeField", "status_code", "Attribute that receives the status."),
    text(_P + "ResponseBodyField", "body", "Attribute that receives the body."),
    text(_P + "ResponseHeadersField", "headers", "Attribute that receives the headers."),
    text(_P + "ResponseContentTypeField", "content_type", "Attribute that receives the content type."),
    text(_P + "ResponseSuccessField", "success", "Attribute that receives whether the request succeeded."),
    text(_P + "ResponseErrorMessageField", "error_message", "Attribute that receives the reason of a failure."),
    flag(_P + "CacheEnabled", True, "Cache responses if the type requests it."),
    integer(_P + "MaxCacheEntries", 10_000, "Maximum number of cached responses."),
    integer(_P + "CachePruneIntervalSeconds", 60, "Seconds between removals of expired responses.", minimum=1),
    texts(
        _P + "AllowedHosts",
        None,
        "Hosts to which values of requests and redirects may lead: `api.example.com`, `*.example.com`, `host:8080`; "
        "null: any host on the public internet. A host in a comment or in the configuration needs no entry.",
    ),
    texts(
        _P + "AllowedNetworks",
        None,
        "Networks that are not public and that these requests may reach, such as `10.1.0.0/16`; not needed for hosts "
        "of `AllowedHosts` without wildcard.",
    ),
    texts(_P + "AllowedSchemes", ("http", "https"), "Schemes that these requests may have."),
    integer(
        _P + "MaxConnectionsPerHost",
        256,
        "Maximum number of connections of a worker to one host. Further requests wait.",
        minimum=1,
    ),
    integer(
        _P + "MaxWaitingPerHost",
        1024,
        "Maximum number of requests that wait for a connection to one host; further ones fail at once.",
    ),
    interval(_P + "ConnectionIdleTimeout", "1 minute", "Time after which an unused connection is closed."),
    interval(
        _P + "ConnectionLifetime",
        "5 minutes",
        "Time after which a connection is replaced, and its host resolved again.",
    ),
    integer(
        _P + "MaxResponseBytes",
        67_108_864,
        "Maximum size of a response for a routine, which is held in memory; null: no limit. Pass-through has no limit.",
        nullable=True,
        minimum=1,
    ),
    integer(
        _P + "CircuitBreakerFailures",
        0,
        "Consecutive failures (no response, or 502, 503, 504) after which the circuit breaker of a host opens. 0: "
        "never.",
    ),
    interval(
        _P + "CircuitBreakerDuration",
        "10 seconds",
        "Time for which no requests are sent to the host. Proxies respond with 503 and `Retry-After`.",
    ),
    flag(_P + "Http2", True, "Use HTTP/2 with servers that offer it over TLS."),
    text(_P + "CaFile", None, "File with certificates of authorities to trust besides those of the system."),
    text(
        _P + "ClientCertificate",
        None,
        "File with a client certificate, and optionally its key, for servers that request one.",
    ),
    text(_P + "ClientCertificateKey", None, "File with the key of that certificate."),
)
