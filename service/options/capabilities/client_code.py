"""Read `Service:ClientCodeGen` and the sections for Dart and Python: options of generated client code (clients-1 to
clients-3, docs/internals/behaviour/clients.md)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from rowcall.core.codegen.options import ClientCodeOptions, DartOptions, HookOptions, PythonOptions
from rowcall.core.config import Settings
from rowcall.service.options.auth import auth_options
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "Service:ClientCodeGen:"
_Q = _P + "ReactQuery:"
_D = "Service:DartClientCodeGen:"
_Y = "Service:PythonClientCodeGen:"


def client_code_options(settings: Settings, urls: Sequence[str]) -> ClientCodeOptions | None:
    """Return the options of TypeScript client code, or None if none is written. urls: addresses of the listeners."""
    if settings.flag(_Q + "Enabled") and not settings.flag(_P + "Enabled"):
        log.warning("%sEnabled has no effect: %sEnabled is false", _Q, _P)
    path = _path(settings, _P)
    if path is None:
        return None
    types = not settings.flag(_P + "SkipTypes")
    return ClientCodeOptions(
        **_shared(settings, _P, urls),
        path=path,
        type_file=settings.flag(_P + "CreateSeparateTypeFile"),
        export_types=types and settings.flag(_P + "ExportTypes"),
        parse_query_from=settings.text_or_none(_P + "ImportParseQueryFrom") or None,
        types=types,
        error_expression=settings.text(_P + "ErrorExpression"),
        error_type=settings.text(_P + "ErrorType"),
        hooks=_hooks(settings, types=types),
    )


def dart_options(settings: Settings, urls: Sequence[str]) -> DartOptions | None:
    """Return the options of `Service:DartClientCodeGen` (clients-28, clients-29), or None if no code is written."""
    path = _path(settings, _D)
    if path is None:
        return None
    return DartOptions(
        **_shared(settings, _D, urls),
        path=path,
        models_file=settings.flag(_D + "SeparateModelsFile"),
        error_name=settings.text(_D + "ErrorTypeName"),
        result_name=settings.text(_D + "ResultTypeName"),
        model_prefix=settings.text_or_none(_D + "ModelPrefix") or "",
        model_suffix=settings.text_or_none(_D + "ModelSuffix") or "",
        dates=settings.flag(_D + "UseDateTimeType"),
    )


def python_options(settings: Settings, urls: Sequence[str]) -> PythonOptions | None:
    """Return the options of `Service:PythonClientCodeGen`, or None if no code is written."""
    path = _path(settings, _Y)
    if path is None:
        return None
    return PythonOptions(**_chosen(settings, _Y, urls), path=path)


def _path(settings: Settings, section: str) -> str | None:
    """Return the path of the files, or None if no code is to be written."""
    if not settings.flag(section + "Enabled"):
        return None
    path = settings.text_or_none(section + "FilePath")
    if not path:
        log.warning("%sEnabled is true, but %sFilePath is not set: no client code is written", section, section)
    return path or None


def _shared(settings: Settings, section: str, urls: Sequence[str]) -> dict[str, Any]:
    """Return the options that Dart and TypeScript share, including those of every language."""
    return {
        **_chosen(settings, section, urls),
        "status_code": settings.flag(section + "IncludeStatusCode"),
        "base_url_from": settings.text_or_none(section + "ImportBaseUrlFrom") or None,
        "parse_url": settings.flag(section + "IncludeParseUrlParam"),
        "parse_request": settings.flag(section + "IncludeParseRequestParam"),
        "json_type": settings.text(section + "DefaultJsonType"),
        "export_urls": settings.flag(section + "ExportUrls"),
        "unique_models": settings.flag(section + "UniqueModels"),
        "xsrf_header": settings.text_or_none(section + "XsrfTokenHeaderName") or None,
        "export_sources": settings.flag(section + "ExportEventSources"),
    }


def _chosen(settings: Settings, section: str, urls: Sequence[str]) -> dict[str, Any]:
    """Return the options that all languages share."""
    return {
        "overwrite": settings.flag(section + "FileOverwrite"),
        "base_url": _base_url(settings, section, urls),
        "comment": settings.choice(section + "CommentHeader").capitalize(),
        "comments": settings.flag(section + "CommentHeaderIncludeComments"),
        "by_schema": settings.flag(section + "BySchema"),
        "header": settings.lines(section + "HeaderLines"),
        "skip_routines": _names(settings, section + "SkipRoutineNames"),
        "skip_functions": _names(settings, section + "SkipFunctionNames"),
        "skip_paths": _names(settings, section + "SkipPaths"),
        "skip_schemas": _names(settings, section + "SkipSchemas"),
        "routine_names": settings.flag(section + "UseRoutineNameInsteadOfEndpoint"),
        "imports": settings.texts(section + "CustomImports") or (),
        "headers": settings.text_map(section + "CustomHeaders"),
        "schema_names": settings.flag(section + "IncludeSchemaInNames"),
        "omit_automatic": settings.flag(section + "OmitAutomaticParameters"),
        **_of_service(settings),
    }


def _of_service(settings: Settings) -> dict[str, Any]:
    return {
        "prefix": settings.text_or_none("Service:UrlPathPrefix") or "",
        "execution_header": settings.text("Service:ExecutionIdHeaderName"),
        "camel": settings.flag("Service:CamelCaseNames"),
        "claims": auth_options(settings).mapping,
        "event_level": settings.choice("Service:DefaultServerSentEventsEventNoticeLevel"),
    }


def _names(settings: Settings, key: str) -> frozenset[str]:
    return frozenset(settings.texts(key) or ())


def _base_url(settings: Settings, section: str, urls: Sequence[str]) -> str:
    if not settings.flag(section + "IncludeHost"):
        return ""
    custom = settings.text_or_none(section + "CustomHost")
    if custom is not None:
        return custom
    url = next(iter(urls), "http://localhost:5000")
    if _is_any_address(urlsplit(url).hostname):
        log.warning(
            "%sCustomHost: the service listens on all addresses, so clients would call %s; name the host there, or set "
            "%sIncludeHost to false for relative addresses",
            *(section, url, section),
        )
    return url


def _is_any_address(host: str | None) -> bool:
    try:
        return host is not None and ip_address(host).is_unspecified
    except ValueError:
        return False


def _hooks(settings: Settings, *, types: bool) -> HookOptions | None:
    if not settings.flag(_Q + "Enabled"):
        return None
    path = settings.text_or_none(_Q + "FilePath")
    if not path:
        raise StartupError(f"{_Q}FilePath is needed with {_Q}Enabled: a path such as src/{{0}}Hooks.ts")
    source = settings.text_or_none(_Q + "ImportFrom") or ""
    if not source.strip():
        raise StartupError(f"{_Q}ImportFrom: the name of a module is needed")
    if not types:
        log.warning("%sEnabled has no effect with %sSkipTypes: hooks are TypeScript", _Q, _P)
        return None
    if settings.flag(_P + "BySchema") and "{0}" not in path:
        log.error(
            "%sFilePath: %s has no {0}, and every schema has hooks of its own; no hooks are written (%sBySchema=false "
            "makes one file)",
            *(_Q, path, _P),
        )
        return None
    return HookOptions(
        path=path,
        overwrite=settings.flag(_Q + "FileOverwrite"),
        prefix=settings.text_or_none(_Q + "QueryKeyPrefix") or None,
        expose_keys=settings.flag(_Q + "ExposeQueryKeys"),
        source=source,
        header=settings.lines(_Q + "HeaderLines"),
    )
