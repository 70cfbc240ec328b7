"""Read `OpenApiOptions` and `HttpFileOptions`: documents about the endpoints (documents-1 to documents-8)."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rowcall.core.auth.options import AuthOptions
from rowcall.core.building.service import ServiceOptions
from rowcall.core.config import Settings
from rowcall.core.documents.options import (
    HttpFileOptions,
    OpenApi,
    OpenApiOptions,
    OpenApiTargets,
    ReferencePage,
    SecuritySchemeKeys,
    ServerKeys,
)
from rowcall.service.options.auth import auth_options
from rowcall.service.options.tables import export_options, table_formats
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "Service:OpenApiOptions:"
_H = "Service:HttpFileOptions:"
_D = "Docs:"


def open_api(settings: Settings, database: str, urls: Sequence[str]) -> OpenApi | None:
    """Return the OpenAPI document with its targets, or None if there is none. Raises ConfigError, StartupError.

    database: its name. urls: addresses of the listeners.
    """
    if not settings.is_enabled(OpenApiOptions):
        return None
    targets = settings.read(OpenApiTargets)
    if targets.file is None and targets.path is None:
        log.warning("%sEnabled is true, but FileName and UrlPath are both null: there is no document", _P)
        return None
    return OpenApi(document_options(settings, database, urls), targets.file, targets.path, targets.overwrite)


def reference_page(settings: Settings, title: str) -> ReferencePage | None:
    """Return the page with the API reference; None: it is off. Raises `StartupError` without a document or viewer.
    title: of the page, if the document has none.
    """
    if not settings.is_enabled(ReferencePage):
        return None
    document = settings.read(OpenApiTargets).path if settings.is_enabled(OpenApiOptions) else None
    if not document:
        raise StartupError(f"{_D}Enabled needs the OpenAPI document: set {_P}Enabled and {_P}UrlPath")
    spec = importlib.util.find_spec("swagger_ui")
    if spec is None or spec.origin is None:
        raise StartupError(f"{_D}Enabled needs swagger-ui-py: pip install 'rowcall[docs]'")
    return settings.read(
        ReferencePage,
        document=document,
        title=settings.read(OpenApiOptions, servers=(), schemes=()).title or title,
        folder=str(Path(spec.origin).parent / "static"),
    )


def document_options(settings: Settings, database: str, urls: Sequence[str]) -> OpenApiOptions:
    """Return the options of the content of the document, which do not depend on its targets.

    Raises ConfigError, StartupError. database: its name. urls: addresses of the listeners; the document names the first
    one as a server, unless this is switched off or the configured servers include it.
    """
    auth = auth_options(settings)
    options = settings.read(
        OpenApiOptions,
        servers=(),
        schemes=tuple(_schemes(settings)) or tuple(_of_auth(auth)),
        camel=settings.read(ServiceOptions).camel_case_names,
        claims=auth.login,
        tables=table_formats(settings),
        exports=export_options(settings),
        level=settings.read(ServiceOptions).event_level,
    )
    servers = _servers(settings, urls if options.add_current_server else ())
    return replace(options, title=options.title or database, servers=tuple(servers))


def http_file_options(settings: Settings, database: str, urls: Sequence[str]) -> HttpFileOptions | None:
    """Return the options of `.http` files with example requests, or None if none are written or served. database: its
    name. urls: addresses of the listeners. Raises as `auth_options`."""
    options = settings.read_enabled(
        HttpFileOptions,
        host=next(iter(urls), "http://localhost:8080").rstrip("/"),
        claims=auth_options(settings).login,
    )
    if options is None or options.option == "disabled":
        return None
    return options if options.name else replace(options, name=database or "rowcall")


def _servers(settings: Settings, urls: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return URL and description (None: it has none) of the configured servers and, unless it is one of them, of the
    first of `urls`.
    """
    entries = [settings.read(ServerKeys, number) for number in settings.names_of(ServerKeys)]
    servers = [(entry.url, entry.description) for entry in entries if entry.url is not None]
    if urls and urls[0] not in {url for url, _ in servers}:
        servers.append((urls[0], "Development server" if "localhost" in urls[0] else None))
    return servers


def _of_auth(auth: AuthOptions) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Yield the security schemes of the authentication schemes that `Auth` enables: name, and members of the OpenAPI
    object.
    """
    if auth.schemes.jwts or auth.schemes.bearers:
        form = (("bearerFormat", "JWT"),) if auth.schemes.jwts else ()
        yield "bearerAuth", (("type", "http"), ("scheme", "bearer"), *form)
    for number, cookie in enumerate(dict.fromkeys(scheme.cookie for scheme in auth.schemes.cookies)):
        name = f"cookieAuth{number + 1 if number else ''}"
        yield name, (("type", "apiKey"), ("in", "cookie"), ("name", cookie))
    if auth.api_keys is not None:
        yield "apiKeyAuth", (("type", "apiKey"), ("in", "header"), ("name", auth.api_keys.header))


def _schemes(settings: Settings) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return the configured security schemes: name, and members of the OpenAPI object. Without name or type, a scheme
    is left out with a warning.
    """
    schemes = []
    for number in settings.names_of(SecuritySchemeKeys):
        entry = settings.read(SecuritySchemeKeys, number)
        if entry.name is None or entry.type is None:
            log.warning("%sSecuritySchemes: %s is left out; Name and Type (Http or ApiKey) are needed", _P, entry.name)
            continue
        if entry.type == "Http":
            members = [("type", "http"), ("scheme", (entry.scheme or "bearer").lower())]
            members += [] if entry.bearer_format is None else [("bearerFormat", entry.bearer_format)]
        else:
            place = (entry.place or "header").lower()
            members = [("type", "apiKey"), ("name", entry.in_ or entry.name), ("in", place)]
        members += [] if entry.description is None else [("description", entry.description)]
        schemes.append((entry.name, tuple(members)))
    return schemes
