"""Options of PostgREST's interface from the section `PostgRest`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rowcall.core.cache.options import CacheOptions
from rowcall.core.config import Settings
from rowcall.core.config.sections.postgrest import PostgRest
from rowcall.core.postgrest.configuration.keys import APP_SETTINGS, INTERFACE_KEYS
from rowcall.core.postgrest.options import (
    ANONYMOUS_CACHE,
    PUBLISH_NOTICES,
    InvalidOptionError,
    PostgRestOptions,
    options_of,
)
from rowcall.service.startup_error import StartupError


def postgrest_options(settings: Settings) -> PostgRestOptions | None:
    """Return the options; None if the interface is not served. Raises `StartupError`."""
    if not settings.is_enabled(PostgRest):
        return None
    try:
        return options_of(interface_texts(settings))
    except InvalidOptionError as error:
        raise StartupError(f"PostgRest: {error}") from None


def interface_texts(settings: Settings) -> dict[str, str]:
    """Return the section `PostgRest` as texts, by the keys of PostgREST. Raises `InvalidOptionError` for a file that
    cannot be read, and `StartupError` for values that cannot work.
    """
    options = settings.read(PostgRest)
    texts = {"path": options.path, "rate-limiter-policy": options.rate_limiter or ""}
    seconds = options.anonymous_cache
    if seconds:
        if not settings.is_enabled(CacheOptions):
            raise StartupError("PostgRest:AnonymousCache needs CacheOptions:Enabled")
        texts[ANONYMOUS_CACHE] = str(seconds)
    if options.publish_notices is not None:
        texts[PUBLISH_NOTICES] = options.publish_notices.value
    for key in INTERFACE_KEYS:
        texts[key.postgrest] = _text(settings.value_of(f"PostgRest:{key.name}"))
    texts["jwt-secret"] = secret_of(texts["jwt-secret"])
    for name, text in options.app_settings.items():
        texts[APP_SETTINGS + name] = text or ""
    return texts


def _text(value: object) -> str:
    """Return a value as PostgREST writes it: `true` or `false` for a boolean, an empty text for None. For
    `db-extra-search-path` and `db-hoisted-tx-settings`, an empty text means no names; for other keys, the default."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def secret_of(text: str) -> str:
    """Return the secret for a text of `jwt-secret`: the content of the file that `@PATH` names, without a final line
    feed; else the text. Raises `InvalidOptionError` if the file cannot be read, or is not UTF-8.
    """
    if not text.startswith("@"):
        return text
    try:
        return _content(Path(text[1:])).removesuffix("\n")
    except OSError as error:
        raise InvalidOptionError(f"jwt-secret: the file {text[1:]} can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidOptionError(
            f"jwt-secret: the file {text[1:]} is not UTF-8 (byte {error.start}); "
            "write a binary key in base64 and set jwt-secret-is-base64"
        ) from None


def _content(path: Path) -> str:
    """Return the present text of a file. A pipe, such as `/dev/stdin`, is read once only."""
    return path.read_text(encoding="utf-8") if path.is_file() else _content_of_pipe(path)


@cache
def _content_of_pipe(path: Path) -> str:
    return path.read_text(encoding="utf-8")
