"""Keys of proxying: endpoints that forward requests to another server."""

from rowcall.core.config.keys import Key, flag, integer, section, text, texts

_P = "Service:ProxyOptions:"


def _parameter(name: str, default: str, what: str) -> Key:
    return text(f"{_P}Response{name}Parameter", default, f"Parameter of the routine that receives {what}.")


ROWS: tuple[Key, ...] = (
    section("Service:ProxyOptions", "Endpoints that ask another server."),
    flag(_P + "Enabled", False, "Let annotations do so."),
    text(_P + "Host", None, "That server, where the annotation names none."),
    # A text, because an invalid interval does not prevent the start (proxies-1, proxies-2).
    text(
        _P + "DefaultTimeout",
        "00:00:30",
        "Longest wait for it: an interval. null, and what is none, is 30 seconds.",
        nullable=True,
    ),
    flag(_P + "ForwardHeaders", True, "Send the request's headers on."),
    flag(
        _P + "ForwardCredentials",
        False,
        "Send on what the caller signs in here with: session cookies, the API key, Bearer tokens and Basic passwords.",
    ),
    flag(
        _P + "SendForwardedHeaders",
        True,
        "Send X-Forwarded-For, -Proto, -Host and Forwarded about the client. What the client itself claims stays here.",
    ),
    texts(_P + "ExcludeHeaders", ("Host", "Content-Length", "Transfer-Encoding"), "Request headers that stay here."),
    flag(_P + "ForwardResponseHeaders", True, "Send the answer's headers back."),
    texts(_P + "ExcludeResponseHeaders", ("Transfer-Encoding", "Content-Length"), "Headers that do not come back."),
    _parameter("StatusCode", "_proxy_status_code", "the status"),
    _parameter("Body", "_proxy_body", "the body"),
    _parameter("Headers", "_proxy_headers", "the headers"),
    _parameter("ContentType", "_proxy_content_type", "the content type"),
    _parameter("Success", "_proxy_success", "whether it worked"),
    _parameter("ErrorMessage", "_proxy_error_message", "why it did not"),
    flag(_P + "ForwardUploadContent", False, "Send uploads on as they are."),
    integer(
        _P + "MaxForwardedQueryParamLength",
        2048,
        "Longest value of ours that goes into the other server's query string. 0 or less sets no limit.",
    ),
)
