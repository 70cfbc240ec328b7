"""Keys of PostgREST's interface; the declarations are in `core.postgrest.configuration.keys`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowcall.core.endpoint.capabilities import NoticeLevel
from rowcall.core.postgrest.configuration.keys import INTERFACE_KEYS, ConfigurationKey
from rowcall.core.sections.declaration import choice, flag, integer, interval, section, text, text_map


def _declared_field(key: ConfigurationKey) -> Any:
    if key.is_flag:
        return flag(key.name, key.default == "true", key.meaning)
    if key.is_number:
        return integer(key.name, None if key.default is None else int(key.default), key.meaning)
    if key.choices:
        return choice(key.name, " ".join(key.choices), key.default, key.meaning)
    return text(key.name, key.default, key.meaning, nullable=True, secret=key.secret)


@section("PostgRest", "PostgREST's interface on tables, views and functions. Keys may have PostgREST's names too.")
class PostgRest:
    enabled = flag("Enabled", False, "Serve PostgREST's interface.")
    path: str = text(
        "Path", "/", "Path below which it is served; endpoints and other paths of the service win over it."
    )
    rate_limiter: str | None = text("RateLimiterPolicy", None, "Rate limit of all requests below the path.")
    anonymous_cache: float | None = interval(
        "AnonymousCache",
        None,
        "Lifetime of cached results of reads by the anonymous role, for all of its requests. null: none is cached.",
    )
    publish_notices: NoticeLevel | None = choice(
        "PublishNotices",
        NoticeLevel,
        None,
        "Severity (exactly) of the notices of its requests that become events, for signed-in users with the role of "
        "the request, or those whom their HINT names. null: none.",
    )
    types_file = text(
        "DatabaseTypesFile",
        None,
        "File in TypeScript to write, with the type `Database` for supabase-js and postgrest-js. null: none.",
    )
    vars().update({key.name: _declared_field(key) for key in INTERFACE_KEYS})
    app_settings: Mapping[str, str | None] = text_map(
        "AppSettings", {}, "Settings `app.settings.NAME` of every transaction, by NAME.", secret=True
    )
