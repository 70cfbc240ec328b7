"""Composite types that stand for outgoing HTTP requests (spec 4.5)."""

from rowcall.core.config.keys import Key, flag, integer, pending, section, text

_P = "Service:HttpClientOptions:"

ROWS: tuple[Key, ...] = pending(
    section("Service:HttpClientOptions", "Composite types that stand for outgoing HTTP requests."),
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
)
