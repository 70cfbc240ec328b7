"""Read `HttpServer` and its neighbours: options of the listeners and of granian (browsers-12, server-1 to server-5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rowcall.core.config import Settings
from rowcall.core.config.table import key_at
from rowcall.core.config.tree import find
from rowcall.core.http.forwarded_headers import host_pattern
from rowcall.core.http.limits import HttpLimits
from rowcall.service.options.server.affinity import worker_count
from rowcall.service.options.server.browsers import cors, security_headers
from rowcall.service.options.server.compression import compression
from rowcall.service.options.worker import HttpOptions
from rowcall.service.sockets.certificates import CertificateFiles
from rowcall.service.sockets.listeners import Address, ListenerPlan
from rowcall.service.startup_error import StartupError

_LIMITS = "HttpServer:Limits:"
_HTTP2 = _LIMITS + "Http2:"
_HTTPS_PORT = "Ssl:HttpsPort"
_PROTOCOLS = {
    "http1": "1",
    "http2": "2",
    "http1andhttp2": "auto",
    "http1andhttp2andhttp3": "auto",
}

WITHOUT_EFFECT = (
    _LIMITS + "MaxConcurrentUpgradedConnections",
    _HTTP2 + "HeaderTableSize",
    _HTTP2 + "KeepAlivePingPolicy",
    _LIMITS + "Http3:MaxRequestHeaderFieldSize",
    "HttpServer:DisableStringReuse",
    "HttpServer:AllowAlternateSchemes",
    "HttpServer:AllowSynchronousIO",
    "HttpServer:AllowResponseHeaderCompression",
    "HttpServer:AllowHostHeaderOverride",
    "ThreadPool:MinWorkerThreads",
    "ThreadPool:MinCompletionPortThreads",
)
"""Keys that are accepted and have no effect, because granian has no such setting."""


def without_effect(settings: Settings) -> tuple[str, ...]:
    """Return configured keys without effect, and keys whose configured value granian cannot apply."""
    named = [path for path in WITHOUT_EFFECT if _is_given(settings, path) and not _is_default(settings, path)]
    keep_alive = settings.seconds_or_none(_LIMITS + "KeepAliveTimeout")
    header_timeout = settings.seconds_or_none(_LIMITS + "RequestHeadersTimeout")
    if keep_alive and header_timeout and keep_alive != header_timeout:
        named.append(f"{_LIMITS}KeepAliveTimeout (RequestHeadersTimeout holds for idle connections too)")
    if (settings.integer_or_none(_LIMITS + "MaxRequestHeaderCount") or 0) > HEADER_COUNT:
        named.append(f"{_LIMITS}MaxRequestHeaderCount (it cannot be more than {HEADER_COUNT})")
    return tuple(named)


def configuration_warnings(settings: Settings, https_port: int | None) -> Iterator[str]:
    """Yield warnings about settings of the HTTP server that do not do what they seem to (server-4). https_port: port of
    an https listener; None: there is none.
    """
    if ignored := without_effect(settings):
        yield f"these keys have no effect in this HTTP server: {', '.join(ignored)}"
    if settings.names("HttpServer:Endpoints") and _is_given(settings, "Urls"):
        yield "Urls is not used: HttpServer:Endpoints says where to listen"
    for name, endpoint in _sections(settings, "HttpServer:Endpoints").items():
        for word in _words(endpoint.get("sslprotocols")):
            if word.casefold() not in _TLS_VERSIONS:
                yield f"HttpServer:Endpoints:{name}:SslProtocols: {word!r} is none of Tls12, Tls13 and is ignored"
    has_https_port = https_port is not None or settings.integer_or_none(_HTTPS_PORT) is not None
    if not has_https_port and settings.flag("Ssl:Enabled") and settings.flag("Ssl:UseHttpsRedirection"):
        yield f"Ssl:UseHttpsRedirection does nothing: no address is https; set {_HTTPS_PORT} if a proxy accepts https"


HEADER_COUNT = 100
"""The maximum number of request headers that granian reads."""


def _is_given(settings: Settings, path: str) -> bool:
    node = find(settings.root, path)
    return node is not None and getattr(node, "text", "") not in (None, "")


def _is_default(settings: Settings, path: str) -> bool:
    """Return whether the value is the default, as in the output of `rowcall --config`; then no warning is due."""
    return str(settings.value(path)).casefold() == str(key_at(path).default).casefold()


def _read_at_once(settings: Settings, chosen: int | None) -> int:
    """Return the size of one read of an HTTP/1 connection in bytes; 0 means the size of a request head. chosen:
    configured size; None: the default.

    Each chunk of a body changes threads three times. With the small buffer of a request head, this is most of the time
    of an upload; so 256 KiB are read at once if uploads are enabled.
    """
    if chosen is not None:
        return min(chosen, 1_048_576)
    return 262_144 if settings.flag("Service:UploadOptions:Enabled") else 0


def http_options(settings: Settings) -> HttpOptions:
    limits = settings.read(HttpLimits)
    return HttpOptions(
        body_limit=limits.body_size,
        sign_in_body_limit=limits.sign_in_body_size,
        form_body_limit=limits.form_body_size,
        bodies=limits.bodies,
        allowed_hosts=_allowed_hosts(settings),
        header_timeout=limits.header_timeout or limits.keep_alive or 30.0,
        keep_alive=limits.keep_alive != 0,
        line_limit=limits.line_size,
        headers_limit=limits.headers_size,
        header_count_limit=limits.header_count,
        read_at_once=_read_at_once(settings, limits.read_at_once),
        engine=settings.choice("HttpServer:Engine"),
        connections=None if limits.connections is None else max(1, limits.connections // worker_count(settings)),
        response_buffer=limits.response_buffer,
        http2=limits.http2,
        threads=_threads(settings),
        blocking_threads=settings.integer_or_none("ThreadPool:MaxWorkerThreads"),
        server_timing=settings.flag("HttpServer:ServerTiming"),
        server_header=settings.flag("HttpServer:AddServerHeader"),
        slow_client=settings.seconds("ConnectionSettings:Pool:SlowClientTimeout"),
        redirect_to_https=settings.flag("Ssl:Enabled") and settings.flag("Ssl:UseHttpsRedirection"),
        https_port=settings.integer_or_none(_HTTPS_PORT),
        hsts=settings.flag("Ssl:Enabled") and settings.flag("Ssl:UseHsts"),
        compression=compression(settings),
        security_headers=security_headers(settings),
        cors=cors(settings),
    )


def _allowed_hosts(settings: Settings) -> tuple[str, ...]:
    key = "HttpServer:AllowedHosts"
    try:
        return tuple(map(host_pattern, settings.texts(key) or ()))
    except ValueError as error:
        raise StartupError(f"{key}: {error}") from None


def _threads(settings: Settings) -> int:
    threads = settings.integer_or_none("HttpServer:Threads")
    return threads or settings.integer_or_none("ThreadPool:MaxCompletionPortThreads") or 1


def listener_plans(settings: Settings) -> tuple[ListenerPlan, ...]:
    """Return the listeners of `HttpServer:Endpoints`; if there are none, those of `Urls`. Raises StartupError."""
    default = _default_certificate(settings)
    endpoints = _sections(settings, "HttpServer:Endpoints")
    complete = {name.casefold() for name in endpoints}
    incomplete = next(
        (name for name in settings.names("HttpServer:Endpoints") if name.casefold() not in complete), None
    )
    if incomplete is not None:
        raise StartupError(f"HttpServer:Endpoints:{incomplete}: Url is missing")
    if endpoints:
        return tuple(_endpoint_plan(name, endpoint, default, settings) for name, endpoint in endpoints.items())
    protocols = _PROTOCOLS[settings.choice("HttpServer:Protocols").casefold()]
    urls = [url for url in settings.text("Urls").split(";") if url.strip()]
    return tuple(ListenerPlan(Address.parse(url), protocols, default) for url in urls)


def unix_mode(settings: Settings) -> int | None:
    """Return the configured permissions of Unix sockets (octal, such as 660); None: the umask decides. Raises
    StartupError for an invalid value.
    """
    text = settings.text_or_none("HttpServer:UnixSocketPermissions")
    if not text:
        return None
    try:
        mode = int(text, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o777:
        raise StartupError(f"HttpServer:UnixSocketPermissions: {text!r} are not permissions such as 660")
    return mode


def _endpoint_plan(
    name: str, endpoint: Mapping[str, Any], default: CertificateFiles | None, settings: Settings
) -> ListenerPlan:
    key = f"HttpServer:Endpoints:{name}"
    url = endpoint.get("url")
    if not url:
        raise StartupError(f"{key}: Url is missing")
    certificate = endpoint.get("certificate")
    own = CertificateFiles.of(f"{key}:Certificate", certificate) if isinstance(certificate, Mapping) else default
    words = endpoint.get("protocols") or settings.choice("HttpServer:Protocols")
    protocols = _PROTOCOLS.get(str(words).replace(" ", "").casefold())
    if protocols is None:
        raise StartupError(f"{key}:Protocols: {words!r} is not Http1, Http2 or Http1AndHttp2")
    return ListenerPlan(
        Address.parse(str(url), f"{key}:Url"), protocols, own, _only_tls13(endpoint.get("sslprotocols"))
    )


_TLS_VERSIONS = {"tls12", "tls13"}


def _words(setting: object) -> list[str]:
    values = setting.values() if isinstance(setting, Mapping) else setting if isinstance(setting, list | tuple) else ()
    return [str(value) for value in values]


def _only_tls13(names: object) -> bool:
    """Return whether `SslProtocols` contains `Tls13` and not `Tls12`, which disables TLS 1.2."""
    versions = [name.casefold() for name in _words(names)]
    return "tls13" in versions and "tls12" not in versions


def _default_certificate(settings: Settings) -> CertificateFiles | None:
    section = _sections(settings, "HttpServer:Certificates").get("Default")
    return CertificateFiles.of("HttpServer:Certificates:Default", section) if section else None


def _sections(settings: Settings, path: str) -> dict[str, Mapping[str, Any]]:
    """Return the named sections below `path`: names as written (except `Default`), keys in lower case."""
    value = settings.value(path)
    return dict(_named(value)) if isinstance(value, Mapping) else {}


def _named(value: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, section in value.items():
        if isinstance(section, Mapping):
            label = "Default" if name.casefold() == "default" else name
            yield label, {key.casefold(): inner for key, inner in section.items()}
