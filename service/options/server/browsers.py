"""Read `Cors` and `SecurityHeaders`: response headers for browsers (browsers-1, browsers-2, browsers-1 to
browsers-5)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from rowcall.core.config import Settings
from rowcall.core.http.cors import ANY, Cors
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_HEADERS = {
    "XContentTypeOptions": "x-content-type-options",
    "XFrameOptions": "x-frame-options",
    "ReferrerPolicy": "referrer-policy",
    "ContentSecurityPolicy": "content-security-policy",
    "PermissionsPolicy": "permissions-policy",
    "CrossOriginOpenerPolicy": "cross-origin-opener-policy",
    "CrossOriginEmbedderPolicy": "cross-origin-embedder-policy",
    "CrossOriginResourcePolicy": "cross-origin-resource-policy",
}
_FIELD_VALUE = re.compile(r"[\x20-\x7e\t]*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[^/?#@:\s\\*]+)(:\d{1,5})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def security_headers(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return names and values of the configured security headers.

    X-Frame-Options is left out if `Antiforgery` is enabled, which sends it itself with the pages that need it.
    """
    if not settings.flag("SecurityHeaders:Enabled"):
        return ()
    fields: list[tuple[str, str]] = []
    for name, field in _HEADERS.items():
        key = f"SecurityHeaders:{name}"
        value = settings.text_or_none(key)
        if not value or (name == "XFrameOptions" and settings.flag("Antiforgery:Enabled")):
            continue
        if not _FIELD_VALUE.fullmatch(value):
            raise StartupError(f"{key}: {value!r} cannot be sent as a header; only printable ASCII can")
        fields.append((field, value))
    log.debug("security headers: %s", ", ".join(field for field, _ in fields) or "none")
    return tuple(fields)


def cors(settings: Settings) -> Cors | None:
    """Return the CORS policy. None: responses to other origins carry no CORS headers, so that browsers refuse them."""
    if not settings.flag("Cors:Enabled"):
        return None
    origins = _trimmed_texts(settings, "Cors:AllowedOrigins")
    credentials = settings.flag("Cors:AllowCredentials")
    if ANY in origins and credentials:
        raise StartupError(
            "Cors:AllowCredentials: with `*` in Cors:AllowedOrigins any page could send requests as a signed-in "
            "user; name the origins, or leave credentials out"
        )
    if not origins:
        log.warning(
            "Cors:Enabled is true, but Cors:AllowedOrigins is empty: pages of other origins are refused; name them"
        )
    policy = Cors(
        origins=None if ANY in origins else frozenset(as_browsers_write(origins, "Cors:AllowedOrigins")),
        methods=_tokens(settings, "Cors:AllowedMethods"),
        headers=_tokens(settings, "Cors:AllowedHeaders"),
        exposed=_tokens(settings, "Cors:ExposedHeaders") or (),
        credentials=credentials,
        max_age=settings.integer("Cors:PreflightMaxAgeSeconds"),
    )
    log.debug("CORS: %s", policy)
    return policy


def _trimmed_texts(settings: Settings, key: str) -> tuple[str, ...]:
    return tuple(text.strip() for text in settings.texts(key) or () if text.strip())


def _tokens(settings: Settings, key: str) -> tuple[str, ...] | None:
    """Return the HTTP tokens listed under `key`. None: any token is allowed (`*`)."""
    words = _trimmed_texts(settings, key)
    for word in words:
        if not _TOKEN.fullmatch(word):
            raise StartupError(f"{key}: {word!r} is not a valid HTTP token")
    return None if ANY in words else words


def as_browsers_write(texts: Iterable[str], key: str) -> Iterable[str]:
    """Yield origins as browsers serialise them: lower case, without default port and trailing slash.

    key: the configuration key that holds `texts`, for the message of the StartupError.
    """
    for text in texts:
        origin = text.lower().removesuffix("/")
        if origin == "null":
            yield origin
            continue
        if not _ORIGIN.fullmatch(origin):
            raise StartupError(f"{key}: {text!r} is no origin such as https://shop.example:8443")
        scheme = origin.partition(":")[0]
        yield origin.removesuffix(_DEFAULT_PORTS.get(scheme, "/"))
