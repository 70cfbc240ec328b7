"""Keys of proxying: endpoints that forward requests to another server."""

from rowcall.core.sections.keys import Key, flag, integer, section, text, texts

_P = "Service:ProxyOptions:"


def _parameter(name: str, default: str, what: str) -> Key:
    return text(f"{_P}Response{name}Parameter", default, f"Parameter of the routine that receives {what}.")


ROWS: tuple[Key, ...] = (
    section("Service:ProxyOptions", "Proxying: endpoints that forward requests to another server."),
    flag(_P + "Enabled", False, "Enable the annotations of proxying."),
    text(_P + "Host", None, "Server for annotations that name none."),
    # A text, because an invalid interval does not prevent the start (proxies-1, proxies-2).
    text(
        _P + "DefaultTimeout",
        "00:00:30",
        "Timeout of the other server: an interval. null or an invalid interval: 30 seconds.",
        nullable=True,
    ),
    flag(_P + "ForwardHeaders", True, "Forward the headers of the request."),
    flag(
        _P + "ForwardCredentials",
        False,
        "Forward credentials of the caller for this service: session cookies, API key, bearer tokens, Basic passwords.",
    ),
    flag(
        _P + "SendForwardedHeaders",
        True,
        "Send X-Forwarded-For, -Proto, -Host and Forwarded about the client. Those of the client are not forwarded.",
    ),
    texts(
        _P + "ExcludeHeaders",
        ("Host", "Content-Length", "Transfer-Encoding"),
        "Request headers that are not forwarded.",
    ),
    flag(_P + "ForwardResponseHeaders", True, "Forward the headers of the response."),
    texts(
        _P + "ExcludeResponseHeaders",
        ("Transfer-Encoding", "Content-Length"),
        "Response headers that are not forwarded.",
    ),
    _parameter("StatusCode", "_proxy_status_code", "the status"),
    _parameter("Body", "_proxy_body", "the body"),
    _parameter("Headers", "_proxy_headers", "the headers"),
    _parameter("ContentType", "_proxy_content_type", "the content type"),
    _parameter("Success", "_proxy_success", "whether the request succeeded"),
    _parameter("ErrorMessage", "_proxy_error_message", "the reason of a failure"),
    flag(_P + "ForwardUploadContent", False, "Forward uploads unchanged."),
    integer(
        _P + "MaxForwardedQueryParamLength",
        2048,
        "Maximum length of an injected value in the other server's query string. 0 or less: no limit.",
        minimum=-(2**31),
    ),
)
