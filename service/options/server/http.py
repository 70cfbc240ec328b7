"""Read `HttpServer` and its neighbours: options of the listeners and of granian, and compression of responses
(browsers-12, server-1 to server-5, server-11 to server-13)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rowcall.core.config import Settings
from rowcall.core.config.sections.application import Application
from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.config.sections.http_server import EndpointKeys, HttpServer
from rowcall.core.config.sections.ssl import Ssl
from rowcall.core.config.sections.thread_pool import ThreadPool
from rowcall.core.config.table import key_at
from rowcall.core.config.tree import find, leaves
from rowcall.core.http.compression import Compression, ResponseCompression
from rowcall.core.http.limits import HttpLimits
from rowcall.core.sections.keys import JsonValue
from rowcall.core.uploads.options import UploadOptions
from rowcall.service.options.server.affinity import worker_count
from rowcall.service.options.server.browsers import cors, security_headers
from rowcall.service.options.worker import HttpOptions
from rowcall.service.sockets.certificates import CertificateFiles
from rowcall.service.sockets.listeners import Address, ListenerPlan
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

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
    limits = settings.read(HttpLimits)
    if limits.keep_alive and limits.header_timeout and limits.keep_alive != limits.header_timeout:
        named.append(f"{_LIMITS}KeepAliveTimeout (RequestHeadersTimeout holds for idle connections too)")
    if (limits.header_count or 0) > HEADER_COUNT:
        named.append(f"{_LIMITS}MaxRequestHeaderCount (it cannot be more than {HEADER_COUNT})")
    return tuple(named)


def configuration_warnings(settings: Settings, https_port: int | None) -> Iterator[str]:
    """Yield warnings about settings of the HTTP server that do not do what they seem to (server-4). https_port: port of
    an https listener; None: there is none.
    """
    if ignored := without_effect(settings):
        yield f"these keys have no effect in this HTTP server: {', '.join(ignored)}"
    if settings.names_of(EndpointKeys) and _is_given(settings, "Urls"):
        yield "Urls is not used: HttpServer:Endpoints says where to listen"
    for name, endpoint in _sections(settings.read(HttpServer).endpoints).items():
        for word in _words(endpoint.get("sslprotocols")):
            if word.casefold() not in _TLS_VERSIONS:
                yield f"HttpServer:Endpoints:{name}:SslProtocols: {word!r} is none of Tls12, Tls13 and is ignored"
    ssl = settings.read(Ssl)
    if https_port is None and ssl.port is None and ssl.enabled and ssl.redirects:
        yield f"Ssl:UseHttpsRedirection does nothing: no address is https; set {_HTTPS_PORT} if a proxy accepts https"


HEADER_COUNT = 100
"""The maximum number of request headers that granian reads."""


def _is_given(settings: Settings, path: str) -> bool:
    node = find(settings.root, path)
    return node is not None and getattr(node, "text", "") not in (None, "")


def _is_default(settings: Settings, path: str) -> bool:
    """Return whether the value of the key at `path` is the default, as in the output of `rowcall --config`; then no
    warning is due.
    """
    return str(settings.value_of(path)).casefold() == str(key_at(path).default).casefold()


def _read_at_once(settings: Settings, chosen: int | None) -> int | None:
    """Return how many bytes are read at once from a connection of HTTP/1; None: as many as a request head may have.
    chosen: the configured number, at most 1 MiB; None: 256 KiB if uploads are enabled, else the size of a head.

    Each chunk of a body changes threads three times. With the small buffer of a request head, this is most of the time
    of an upload.
    """
    if chosen is not None:
        return min(chosen, 1_048_576)
    return 262_144 if settings.is_enabled(UploadOptions) else None


def http_options(settings: Settings) -> HttpOptions:
    """Return the options of a worker's HTTP server; the limit of connections is divided by the number of workers.
    Raises StartupError.
    """
    server, limits, threads = settings.read(HttpServer), settings.read(HttpLimits), settings.read(ThreadPool)
    return HttpOptions(
        server=replace(server, threads=server.threads or threads.threads),
        limits=replace(
            limits,
            read_at_once=_read_at_once(settings, limits.read_at_once),
            connections=None if limits.connections is None else max(1, limits.connections // worker_count(settings)),
        ),
        ssl=settings.read(Ssl),
        blocking_threads=threads.blocking,
        slow_client=settings.read(PoolOptions).slow_client,
        compression=compression(settings),
        security_headers=security_headers(settings),
        cors=cors(settings),
    )


def listener_plans(settings: Settings) -> tuple[ListenerPlan, ...]:
    """Return the listeners of `HttpServer:Endpoints`; if there are none, those of `Urls`. Raises StartupError."""
    _refuse_client_certificates(settings)
    server = settings.read(HttpServer)
    certificate = _sections(server.certificates).get("Default")
    default = CertificateFiles.of("HttpServer:Certificates:Default", certificate) if certificate else None
    endpoints = _sections(server.endpoints)
    complete = {name.casefold() for name in endpoints}
    incomplete = next((name for name in settings.names_of(EndpointKeys) if name.casefold() not in complete), None)
    if incomplete is not None:
        raise StartupError(f"HttpServer:Endpoints:{incomplete}: Url is missing")
    if endpoints:
        return tuple(_endpoint_plan(name, keys, default, server.protocols) for name, keys in endpoints.items())
    protocols = _PROTOCOLS[server.protocols.casefold()]
    urls = [url for url in settings.read(Application).urls.split(";") if url.strip()]
    return tuple(ListenerPlan(Address.parse(url), protocols, default) for url in urls)


def _refuse_client_certificates(settings: Settings) -> None:
    """Raise StartupError if a listener has to request certificates of clients (`ClientCertificateMode` in the
    established system): this server requests none, so it would admit clients without one.
    """
    section = find(settings.root, "HttpServer")
    for path, value in leaves(section, "HttpServer") if section is not None else ():
        if path.casefold().endswith(":clientcertificatemode") and (value.text or "").casefold() not in _NO_CERTIFICATES:
            raise StartupError(
                f"{path}: this server requests no certificates of clients; let a reverse proxy verify them"
            )


_NO_CERTIFICATES = {"", "nocertificate"}


def unix_mode(settings: Settings) -> int | None:
    """Return the configured permissions of Unix sockets (octal, such as 660); None: the umask decides. Raises
    StartupError for an invalid value.
    """
    text = settings.read(HttpServer).unix_socket_permissions
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
    name: str, endpoint: Mapping[str, Any], default: CertificateFiles | None, protocols_of_server: str
) -> ListenerPlan:
    """Return the listener of one entry of `HttpServer:Endpoints`. Raises `StartupError`.

    endpoint: its values by key in lower case. default: the certificate of entries without one; None: there is none.
    protocols_of_server: value of `Protocols` for entries without it.
    """
    key = f"HttpServer:Endpoints:{name}"
    url = endpoint.get("url")
    if not url:
        raise StartupError(f"{key}: Url is missing")
    certificate = endpoint.get("certificate")
    own = CertificateFiles.of(f"{key}:Certificate", certificate) if isinstance(certificate, Mapping) else default
    words = endpoint.get("protocols") or protocols_of_server
    protocols = _PROTOCOLS.get(str(words).replace(" ", "").casefold())
    if protocols is None:
        raise StartupError(f"{key}:Protocols: {words!r} is not Http1, Http2 or Http1AndHttp2")
    return ListenerPlan(
        Address.parse(str(url), f"{key}:Url"), protocols, own, _only_tls13(endpoint.get("sslprotocols"))
    )


_TLS_VERSIONS = {"tls12", "tls13"}


def _words(setting: object) -> list[str]:
    """Return the words of a list, or those of a text, which are separated by commas."""
    if isinstance(setting, str):
        return [word.strip() for word in setting.split(",") if word.strip()]
    values = setting.values() if isinstance(setting, Mapping) else setting if isinstance(setting, list | tuple) else ()
    return [str(value) for value in values]


def _only_tls13(names: object) -> bool:
    """Return whether `SslProtocols` contains `Tls13` and not `Tls12`, which disables TLS 1.2. names: its value."""
    versions = [name.casefold() for name in _words(names)]
    return "tls13" in versions and "tls12" not in versions


def _sections(value: JsonValue) -> dict[str, Mapping[str, Any]]:
    """Return named sections: names as written (except `Default`), keys in lower case. value: mapping of the
    configuration; any other value has no sections.
    """
    return dict(_sections_by_name(value)) if isinstance(value, Mapping) else {}


def _sections_by_name(value: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, section in value.items():
        if isinstance(section, Mapping):
            label = "Default" if name.casefold() == "default" else name
            yield label, {key.casefold(): inner for key, inner in section.items()}


_LEVELS = {"Optimal": (4, 6), "Fastest": (1, 1), "NoCompression": (0, 0), "SmallestSize": (11, 9)}
"""Levels of brotli and gzip for each value of `CompressionLevel`."""


def compression(settings: Settings) -> Compression | None:
    """Return the compression options, or None if no response is compressed."""
    keys = settings.read_enabled(ResponseCompression)
    if keys is None:
        return None
    brotli_level, gzip_level = _LEVELS[keys.level]
    offers = (("br", brotli_level, keys.brotli), ("gzip", gzip_level, keys.gzip))
    chosen = [(coding, level) for coding, level, offered in offers if offered]
    if not chosen:
        log.warning(
            "ResponseCompression:Enabled is true, but UseBrotli and UseGzipFallback are false: nothing is compressed"
        )
        return None
    return Compression(
        codings=tuple(coding for coding, _ in chosen),
        effort=tuple(level for _, level in chosen),
        include=keys.include,
        exclude=keys.exclude,
        https=keys.https,
    )
