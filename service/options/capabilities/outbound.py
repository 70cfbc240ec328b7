"""Read `HttpClientOptions` and `ProxyOptions`: outgoing requests (outbound-1, outbound-2, proxies-1, proxies-2)."""

from __future__ import annotations

import ipaddress
import logging

from rowcall.core.config import Settings
from rowcall.core.outgoing.address import DEFAULT_PORTS, BadUrlError, read_address
from rowcall.core.outgoing.guard import Guard
from rowcall.core.outgoing.options import ClientOptions, OutboundOptions, ProxyOptions, TypeOptions
from rowcall.core.text.interval import parse_interval
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_CLIENT = "Service:HttpClientOptions:"
_PROXY = "Service:ProxyOptions:"
FALLBACK_TIMEOUT = 30.0


def outbound_options(settings: Settings) -> OutboundOptions:
    """Return the options of outgoing requests. Raises `StartupError` for invalid values."""
    return OutboundOptions(_client(settings), _types(settings), _proxy(settings))


def _client(settings: Settings) -> ClientOptions:
    return ClientOptions(
        guard=Guard(
            hosts=settings.texts(_CLIENT + "AllowedHosts") or (),
            networks=_networks(settings.texts(_CLIENT + "AllowedNetworks") or ()),
            schemes=_schemes(settings.texts(_CLIENT + "AllowedSchemes") or ()),
        ),
        connections=settings.integer(_CLIENT + "MaxConnectionsPerHost"),
        queue=settings.integer(_CLIENT + "MaxWaitingPerHost"),
        idle=settings.seconds(_CLIENT + "ConnectionIdleTimeout"),
        lifetime=settings.seconds(_CLIENT + "ConnectionLifetime"),
        max_response=settings.integer_or_none(_CLIENT + "MaxResponseBytes"),
        ca_file=settings.text_or_none(_CLIENT + "CaFile"),
        certificate=settings.text_or_none(_CLIENT + "ClientCertificate"),
        certificate_key=settings.text_or_none(_CLIENT + "ClientCertificateKey"),
        http2=settings.flag(_CLIENT + "Http2"),
        breaker_failures=settings.integer(_CLIENT + "CircuitBreakerFailures"),
        breaker_seconds=settings.seconds(_CLIENT + "CircuitBreakerDuration"),
    )


def _networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        try:
            ipaddress.ip_network(text.strip(), strict=False)
        except ValueError:
            message = f"{_CLIENT}AllowedNetworks: {text!r} is no network such as 10.1.0.0/16"
            raise StartupError(message) from None
    return texts


def _schemes(texts: tuple[str, ...]) -> tuple[str, ...]:
    wrong = [text for text in texts if text.lower() not in DEFAULT_PORTS]
    if wrong:
        raise StartupError(f"{_CLIENT}AllowedSchemes: {wrong[0]!r} is neither http nor https")
    return tuple(text.lower() for text in texts)


def _types(settings: Settings) -> TypeOptions:
    return TypeOptions(
        enabled=settings.flag(_CLIENT + "Enabled"),
        status_code=settings.text(_CLIENT + "ResponseStatusCodeField"),
        body=settings.text(_CLIENT + "ResponseBodyField"),
        headers=settings.text(_CLIENT + "ResponseHeadersField"),
        content_type=settings.text(_CLIENT + "ResponseContentTypeField"),
        success=settings.text(_CLIENT + "ResponseSuccessField"),
        error_message=settings.text(_CLIENT + "ResponseErrorMessageField"),
        caches=settings.flag(_CLIENT + "CacheEnabled"),
        max_entries=settings.integer(_CLIENT + "MaxCacheEntries"),
        prune=float(settings.integer(_CLIENT + "CachePruneIntervalSeconds")),
    )


def _proxy(settings: Settings) -> ProxyOptions:
    enabled = settings.flag(_PROXY + "Enabled")
    return ProxyOptions(
        enabled=enabled,
        host=_host(settings.text_or_none(_PROXY + "Host")) if enabled else None,
        timeout=_timeout(settings),
        forward_headers=settings.flag(_PROXY + "ForwardHeaders"),
        forward_credentials=settings.flag(_PROXY + "ForwardCredentials"),
        forwarded_headers=settings.flag(_PROXY + "SendForwardedHeaders"),
        exclude_headers=_names(settings, "ExcludeHeaders"),
        forward_response_headers=settings.flag(_PROXY + "ForwardResponseHeaders"),
        exclude_response_headers=_names(settings, "ExcludeResponseHeaders"),
        status_code=settings.text(_PROXY + "ResponseStatusCodeParameter"),
        body=settings.text(_PROXY + "ResponseBodyParameter"),
        headers=settings.text(_PROXY + "ResponseHeadersParameter"),
        content_type=settings.text(_PROXY + "ResponseContentTypeParameter"),
        success=settings.text(_PROXY + "ResponseSuccessParameter"),
        error_message=settings.text(_PROXY + "ResponseErrorMessageParameter"),
        forward_uploads=settings.flag(_PROXY + "ForwardUploadContent"),
        max_query_value=settings.integer(_PROXY + "MaxForwardedQueryParamLength"),
    )


def _timeout(settings: Settings) -> float:
    """Return the timeout of proxying in seconds; an invalid duration counts as 30 seconds (proxies-1)."""
    text = settings.text_or_none(_PROXY + "DefaultTimeout")
    seconds = parse_interval(text) if text else None
    if text and seconds is None:
        log.warning(
            "%sDefaultTimeout: %r is no interval such as '5 seconds'; %g seconds are used",
            _PROXY,
            text,
            FALLBACK_TIMEOUT,
        )
    return FALLBACK_TIMEOUT if seconds is None else seconds


def _names(settings: Settings, key: str) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in settings.texts(_PROXY + key) or ())


def _host(text: str | None) -> str | None:
    if text is None or not text.strip():
        return None
    if text.startswith("/"):
        return text
    try:
        read_address(text)
    except BadUrlError as error:
        raise StartupError(f"{_PROXY}Host: {error}") from None
    return text.strip()
