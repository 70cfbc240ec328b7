"""Read `OpenApiOptions` and `HttpFileOptions`: documents about the endpoints (documents-1 to documents-8)."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rowcall.core.auth.options import AuthOptions
from rowcall.core.building.service import ServiceOptions
from rowcall.core.config import Settings
from rowcall.core.documents.http_files import HttpFileOptions
from rowcall.core.documents.openapi import OpenApi, OpenApiOptions
from rowcall.core.documents.reference_page import ReferencePage
from rowcall.service.options.auth import auth_options
from rowcall.service.options.tables import table_formats
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "Service:OpenApiOptions:"
_H = "Service:HttpFileOptions:"
_D = "Docs:"


def open_api(settings: Settings, database: str, urls: Sequence[str]) -> OpenApi | None:
    """Return the OpenAPI document with its targets, or None if there is none. urls: addresses of the listeners."""
    if not settings.flag(_P + "Enabled"):
        return None
    file, path = settings.text_or_none(_P + "FileName") or None, settings.text_or_none(_P + "UrlPath") or None
    if file is None and path is None:
        log.warning("%sEnabled is true, but FileName and UrlPath are both null: there is no document", _P)
        return None
    return OpenApi(document_options(settings, database, urls), file, path, settings.flag(_P + "FileOverwrite"))


def reference_page(settings: Settings, title: str) -> ReferencePage | None:
    """Return the page with the API reference; None: it is off. Raises `StartupError` without a document or viewer."""
    if not settings.flag(_D + "Enabled"):
        return None
    document = settings.text_or_none(_P + "UrlPath") if settings.flag(_P + "Enabled") else None
    if not document:
        raise StartupError(f"{_D}Enabled needs the OpenAPI document: set {_P}Enabled and {_P}UrlPath")
    spec = importlib.util.find_spec("swagger_ui")
    if spec is None or spec.origin is None:
        raise StartupError(f"{_D}Enabled needs swagger-ui-py: pip install 'rowcall[docs]'")
    return settings.read(
        ReferencePage,
        document=document,
        title=settings.text_or_none(_P + "DocumentTitle") or title,
        folder=str(Path(spec.origin).parent / "static"),
    )


def document_options(settings: Settings, database: str, urls: Sequence[str]) -> OpenApiOptions:
    """Return the options of the content of the document, which do not depend on its targets. Raises ConfigError."""
    auth = auth_options(settings)
    options = settings.read(
        OpenApiOptions,
        servers=tuple(_servers(settings, urls)),
        schemes=tuple(_schemes(settings)) or tuple(_of_auth(auth)),
        camel=settings.read(ServiceOptions).camel_case_names,
        claims=auth.login,
        tables=table_formats(settings),
        level=settings.read(ServiceOptions).event_level,
    )
    return options if options.title else replace(options, title=database)


def http_file_options(settings: Settings, database: str, urls: Sequence[str]) -> HttpFileOptions | None:
    option = settings.choice(_H + "Option").casefold()
    if not settings.flag(_H + "Enabled") or option == "disabled":
        return None
    options = settings.read(
        HttpFileOptions,
        host=next(iter(urls), "http://localhost:8080").rstrip("/"),
        write=option in ("file", "both"),
        serve=option in ("endpoint", "both"),
        claims=auth_options(settings).login,
    )
    return options if options.name else replace(options, name=database or "rowcall")


def _entries(settings: Settings, key: str) -> list[dict[str, Any]]:
    value = settings.value(_P + key)
    entries = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [{name.casefold(): text for name, text in entry.items()} for entry in entries if isinstance(entry, Mapping)]


def _servers(settings: Settings, urls: Sequence[str]) -> list[tuple[str, str | None]]:
    servers = [
        (str(entry["url"]), entry.get("description")) for entry in _entries(settings, "Servers") if entry.get("url")
    ]
    if settings.flag(_P + "AddCurrentServer") and urls and urls[0] not in {url for url, _ in servers}:
        servers.append((urls[0], "Development server" if "localhost" in urls[0] else None))
    return servers


def _of_auth(auth: AuthOptions) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Yield the security schemes of the authentication schemes that `Auth` enables."""
    if auth.schemes.jwts or auth.schemes.bearers:
        form = (("bearerFormat", "JWT"),) if auth.schemes.jwts else ()
        yield "bearerAuth", (("type", "http"), ("scheme", "bearer"), *form)
    for number, cookie in enumerate(dict.fromkeys(scheme.cookie for scheme in auth.schemes.cookies)):
        name = f"cookieAuth{number + 1 if number else ''}"
        yield name, (("type", "apiKey"), ("in", "cookie"), ("name", cookie))
    if auth.api_keys is not None:
        yield "apiKeyAuth", (("type", "apiKey"), ("in", "header"), ("name", auth.api_keys.header))


_KEY_PLACES = ("header", "query", "cookie")


def _schemes(settings: Settings) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    schemes = []
    for entry in _entries(settings, "SecuritySchemes"):
        name, kind = entry.get("name"), str(entry.get("type") or "").casefold()
        if not name or kind not in ("http", "apikey"):
            log.warning("%sSecuritySchemes: %s is left out; Name and Type (Http or ApiKey) are needed", _P, name)
            continue
        if kind == "http":
            members = [("type", "http"), ("scheme", str(entry.get("scheme") or "bearer").lower())]
            members += [("bearerFormat", str(entry["bearerformat"]))] if entry.get("bearerformat") else []
        else:
            place = str(entry.get("apikeylocation") or "header").lower()
            if place not in _KEY_PLACES:
                log.warning("%sSecuritySchemes:%s: ApiKeyLocation %r is none of %s", _P, name, place, _KEY_PLACES)
            members = [("type", "apiKey"), ("name", str(entry.get("in") or name)), ("in", place)]
        if entry.get("description"):
            members.append(("description", str(entry["description"])))
        schemes.append((str(name), tuple(members)))
    return schemes
