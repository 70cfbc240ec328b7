"""Read `Service:ClientCodeGen` and the sections for Dart and Python: options of generated client code (clients-1 to
clients-3, docs/internals/behaviour/clients.md)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_address
from typing import TypeVar
from urllib.parse import urlsplit

from rowcall.core.building.service import ServiceOptions
from rowcall.core.codegen.options import ClientCodeOptions, ClientOptions, DartOptions, HookOptions, PythonOptions
from rowcall.core.config import Settings
from rowcall.core.text.naming import path_prefix
from rowcall.service.options.auth import auth_options
from rowcall.service.options.tables import table_formats
from rowcall.service.sockets.listeners import tcp_urls
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "Service:ClientCodeGen:"
_Q = _P + "ReactQuery:"


Client = TypeVar("Client", bound=ClientOptions)


def client_code_options(settings: Settings, urls: Sequence[str]) -> ClientCodeOptions | None:
    """Return the options of TypeScript client code, or None if none is written. urls: addresses of the listeners.

    Raises `StartupError` for hooks without a file or module, and as `auth_options` and `table_formats`.
    """
    if settings.is_enabled(HookOptions) and not settings.is_enabled(ClientCodeOptions):
        log.warning("%sEnabled has no effect: %sEnabled is false", _Q, _P)
    options = _options(settings, ClientCodeOptions, _P, urls)
    if options is None:
        return None
    return replace(options, export_types=options.types and options.export_types, hooks=_hooks(settings, options))


def dart_options(settings: Settings, urls: Sequence[str]) -> DartOptions | None:
    """Return the options of `Service:DartClientCodeGen` (clients-28, clients-29), or None if no code is written. urls:
    addresses of the listeners. Raises as `auth_options` and `table_formats`."""
    return _options(settings, DartOptions, "Service:DartClientCodeGen:", urls)


def python_options(settings: Settings, urls: Sequence[str]) -> PythonOptions | None:
    """Return the options of `Service:PythonClientCodeGen`, or None if no code is written. urls: addresses of the
    listeners. Raises as `auth_options` and `table_formats`."""
    return _options(settings, PythonOptions, "Service:PythonClientCodeGen:", urls)


def _options(settings: Settings, kind: type[Client], section: str, urls: Sequence[str]) -> Client | None:
    """Return the options of one language, or None if no code is to be written. section: prefix of its keys, for
    messages. urls: addresses of the listeners.
    """
    service = settings.read(ServiceOptions)
    options = settings.read_enabled(
        kind,
        prefix=path_prefix(service.url_path_prefix, service.kebab_case_urls),
        execution_header=service.execution_header,
        camel=service.camel_case_names,
        claims=auth_options(settings).login,
        event_level=service.event_level.value,
        exact=service.exact_types,
        tables=table_formats(settings),
    )
    if options is None:
        return None
    if not options.path:
        log.warning("%sEnabled is true, but %sFilePath is not set: no client code is written", section, section)
        return None
    return replace(options, base_url=_base_url(options, section, urls))


def _base_url(options: ClientOptions, section: str, urls: Sequence[str]) -> str:
    """Return what generated code puts in front of paths: empty for relative addresses, the configured host, or the
    first of the addresses that is no Unix socket. Warns about an address that stands for all interfaces, and if all are
    Unix sockets.

    section: prefix of the keys, for messages. urls: addresses of the listeners.
    """
    if not options.include_host:
        return ""
    if options.custom_host is not None:
        return options.custom_host
    reachable = tcp_urls(urls)
    url = next(iter(reachable), "http://localhost:5000")
    where = "on all addresses" if _is_any_address(urlsplit(url).hostname) else ""
    if urls and not reachable:
        where = "only on a Unix socket"
    if where:
        log.warning(
            "%sCustomHost: the service listens %s, so clients would call %s; name the host there, or set "
            "%sIncludeHost to false for relative addresses",
            *(section, where, url, section),
        )
    return url


def _is_any_address(host: str | None) -> bool:
    try:
        return host is not None and ip_address(host).is_unspecified
    except ValueError:
        return False


def _hooks(settings: Settings, options: ClientCodeOptions) -> HookOptions | None:
    """Return the options of generated hooks, or None if none are written. Raises `StartupError` without a file or
    module.
    """
    hooks = settings.read_enabled(HookOptions)
    if hooks is None:
        return None
    if not hooks.path:
        raise StartupError(f"{_Q}FilePath is needed with {_Q}Enabled: a path such as src/{{0}}Hooks.ts")
    if not hooks.source:
        raise StartupError(f"{_Q}ImportFrom: the name of a module is needed")
    if not options.types:
        log.warning("%sEnabled has no effect with %sSkipTypes: hooks are TypeScript", _Q, _P)
        return None
    if options.by_schema and "{0}" not in hooks.path:
        log.error(
            "%sFilePath: %s has no {0}, and every schema has hooks of its own; no hooks are written (%sBySchema=false "
            "makes one file)",
            *(_Q, hooks.path, _P),
        )
        return None
    return hooks
