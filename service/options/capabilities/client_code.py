"""`Service:ClientCodeGen` → what clients are written (spec 2.6, reference 07, 2)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rowcall.core.codegen.options import ClientCodeOptions, HookOptions
from rowcall.core.config import Settings
from rowcall.service.options.auth import auth_options
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "Service:ClientCodeGen:"
_Q = _P + "ReactQuery:"


def client_code_options(settings: Settings, urls: Sequence[str]) -> ClientCodeOptions | None:
    """urls: where the service listens."""
    if not settings.flag(_P + "Enabled"):
        if settings.flag(_Q + "Enabled"):
            log.warning("%sEnabled has no effect: %sEnabled is false", _Q, _P)
        return None
    path = settings.text_or_none(_P + "FilePath")
    if not path:
        log.warning("%sEnabled is true, but %sFilePath says nowhere: no client code is written", _P, _P)
        return None
    types = not settings.flag(_P + "SkipTypes")
    return ClientCodeOptions(
        path=path,
        overwrite=settings.flag(_P + "FileOverwrite"),
        base_url=_base_url(settings, urls),
        comment=settings.choice(_P + "CommentHeader").capitalize(),
        comments=settings.flag(_P + "CommentHeaderIncludeComments"),
        by_schema=settings.flag(_P + "BySchema"),
        status_code=settings.flag(_P + "IncludeStatusCode"),
        type_file=settings.flag(_P + "CreateSeparateTypeFile"),
        export_types=types and settings.flag(_P + "ExportTypes"),
        base_url_from=settings.text_or_none(_P + "ImportBaseUrlFrom") or None,
        parse_query_from=settings.text_or_none(_P + "ImportParseQueryFrom") or None,
        parse_url=settings.flag(_P + "IncludeParseUrlParam"),
        parse_request=settings.flag(_P + "IncludeParseRequestParam"),
        header=settings.texts(_P + "HeaderLines") or (),
        skip_routines=_names(settings, "SkipRoutineNames"),
        skip_functions=_names(settings, "SkipFunctionNames"),
        skip_paths=_names(settings, "SkipPaths"),
        skip_schemas=_names(settings, "SkipSchemas"),
        json_type=settings.text(_P + "DefaultJsonType"),
        routine_names=settings.flag(_P + "UseRoutineNameInsteadOfEndpoint"),
        export_urls=settings.flag(_P + "ExportUrls"),
        types=types,
        unique_models=settings.flag(_P + "UniqueModels"),
        xsrf_header=settings.text_or_none(_P + "XsrfTokenHeaderName") or None,
        export_sources=settings.flag(_P + "ExportEventSources"),
        imports=settings.texts(_P + "CustomImports") or (),
        headers=settings.text_map(_P + "CustomHeaders"),
        schema_names=settings.flag(_P + "IncludeSchemaInNames"),
        error_expression=settings.text(_P + "ErrorExpression"),
        error_type=settings.text(_P + "ErrorType"),
        omit_automatic=settings.flag(_P + "OmitAutomaticParameters"),
        prefix=settings.text_or_none("Service:UrlPathPrefix") or "",
        execution_header=settings.text("Service:ExecutionIdHeaderName"),
        camel=settings.flag("Service:CamelCaseNames"),
        claims=frozenset(name for name, _ in auth_options(settings).mapping.parameters),
        event_level=settings.choice("Service:DefaultServerSentEventsEventNoticeLevel"),
        hooks=_hooks(settings, types=types),
    )


def _names(settings: Settings, key: str) -> frozenset[str]:
    return frozenset(settings.texts(_P + key) or ())


def _base_url(settings: Settings, urls: Sequence[str]) -> str:
    if not settings.flag(_P + "IncludeHost"):
        return ""
    given = settings.text_or_none(_P + "CustomHost")
    if given is not None:
        return given
    return next(iter(urls), "http://localhost:5000")


def _hooks(settings: Settings, *, types: bool) -> HookOptions | None:
    if not settings.flag(_Q + "Enabled"):
        return None
    path = settings.text_or_none(_Q + "FilePath")
    if not path:
        raise StartupError(f"{_Q}FilePath is needed with {_Q}Enabled")
    source = settings.text_or_none(_Q + "ImportFrom") or ""
    if not source.strip():
        raise StartupError(f"{_Q}ImportFrom: the name of a module is needed")
    if not types:
        log.warning("%sEnabled has no effect with %sSkipTypes: hooks are TypeScript", _Q, _P)
        return None
    if settings.flag(_P + "BySchema") and "{0}" not in path:
        log.error("%sFilePath: %s has no {0}, and every schema has hooks of its own; no hooks are written", _Q, path)
        return None
    return HookOptions(
        path=path,
        overwrite=settings.flag(_Q + "FileOverwrite"),
        prefix=settings.text_or_none(_Q + "QueryKeyPrefix") or None,
        expose_keys=settings.flag(_Q + "ExposeQueryKeys"),
        source=source,
        header=settings.texts(_Q + "HeaderLines") or (),
    )
