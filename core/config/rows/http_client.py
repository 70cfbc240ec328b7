"""Keys of outgoing requests: HTTP types, and the HTTP client."""

from rowcall.core.config.keys import Key, flag, integer, interval, section, text, texts

_P = "Service:HttpClientOptions:"

ROWS: tuple[Key, ...] = (
    section(
        "Service:HttpClientOptions",
        "Composite types that stand for outgoing HTTP requests, and the client that sends these and those of proxies.",
    ),
    flag(_P + "Enabled", False, "Send the requests of annotated types."),
    text(_P + "ResponseStatusCodeField", "status_code", "Attribute that receives the status."),
    text(_P + "ResponseBodyField", "body", "Attribute that receives the body."),
    text(_P + "ResponseHeadersField", "headers", "Attribute that receives the headers."),
    text(_P + "ResponseContentTypeField", "content_type", "Attribute that receives the content type."),
    text(_P + "ResponseSuccessField", "success", "Attribute that tells whether it worked."),
    text(_P + "ResponseErrorMessageField", "error_message", "Attribute that tells why it did not."),
    flag(_P + "CacheEnabled", True, "Keep answers where the type says so."),
    integer(_P + "MaxCacheEntries", 10_000, "Most answers that are kept."),
    integer(_P + "CachePruneIntervalSeconds", 60, "Seconds between removals of what has expired."),
    texts(
        _P + "AllowedHosts",
        None,
        "Hosts that values of requests and redirects may lead to: `api.example.com`, `*.example.com`, `host:8080`; "
        "null: any host on the public internet. A host written in a comment or in the configuration needs no entry.",
    ),
    texts(
        _P + "AllowedNetworks",
        None,
        "Networks that these may lead to although they are not public, such as `10.1.0.0/16`; a host of "
        "`AllowedHosts` that is written in full needs none.",
    ),
    texts(_P + "AllowedSchemes", ("http", "https"), "Schemes that these may have."),
    integer(_P + "MaxConnectionsPerHost", 256, "Most connections to one host, of each worker. Further requests wait."),
    integer(_P + "MaxWaitingPerHost", 1024, "Most requests that wait for a connection to one host; more fail at once."),
    interval(_P + "ConnectionIdleTimeout", "1 minute", "How long an unused connection is kept."),
    interval(
        _P + "ConnectionLifetime", "5 minutes", "After this a connection is made anew, and its host resolved again."
    ),
    integer(
        _P + "MaxResponseBytes",
        67_108_864,
        "Largest answer that is kept in memory for a routine; null: no limit. What a proxy passes on has none.",
        nullable=True,
    ),
    integer(
        _P + "CircuitBreakerFailures",
        0,
        "Failures in a row (no answer, or status 502, 503, 504) after which a host is not asked for a while. 0: never.",
    ),
    interval(_P + "CircuitBreakerDuration", "10 seconds", "That while. Proxies answer 503 with `Retry-After`."),
    flag(_P + "Http2", True, "Speak HTTP/2 with servers that offer it over TLS."),
    text(_P + "CaFile", None, "File with certificates of authorities to trust besides those of the system."),
    text(_P + "ClientCertificate", None, "File with a certificate, and perhaps its key, to show to servers that ask."),
    text(_P + "ClientCertificateKey", None, "File with the key of that certificate."),
)
