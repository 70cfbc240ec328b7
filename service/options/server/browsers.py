"""Read `Cors`, `SecurityHeaders` and `Antiforgery`: protection of browsers (browsers-1 to browsers-10)."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from collections.abc import Iterable
from dataclasses import replace

from rowcall.core.auth.antiforgery import AntiforgeryOptions
from rowcall.core.config import Settings
from rowcall.core.config.sections.security_headers import SecurityHeaders
from rowcall.core.http.cors import Cors
from rowcall.core.http.origins import serialized_origin
from rowcall.core.operations.static_files import AntiforgeryTags
from rowcall.service.options.application_name import encryption_name
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


def security_headers(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return names and values of the configured security headers. Raises StartupError.

    X-Frame-Options is left out if `Antiforgery` is enabled, which sends it itself with the pages that need it.
    """
    options = settings.read_enabled(SecurityHeaders)
    if options is None:
        return ()
    fields: list[tuple[str, str]] = []
    for name, field in _HEADERS.items():
        value = getattr(options, field.replace("-", "_"))
        if not value or (name == "XFrameOptions" and settings.is_enabled(AntiforgeryOptions)):
            continue
        if not _FIELD_VALUE.fullmatch(value):
            raise StartupError(
                f"SecurityHeaders:{name}: {value!r} cannot be sent as a header; only printable ASCII can"
            )
        fields.append((field, value))
    log.debug("security headers: %s", ", ".join(field for field, _ in fields) or "none")
    return tuple(fields)


def cors(settings: Settings) -> Cors | None:
    """Return the CORS policy. None: responses to other origins carry no CORS headers, so that browsers refuse them."""
    policy = settings.read_enabled(Cors)
    if policy is not None:
        if policy.origins is not None and not policy.origins:
            log.warning(
                "Cors:Enabled is true, but Cors:AllowedOrigins is empty: pages of other origins are refused; name them"
            )
        log.debug("CORS: %s", policy)
    return policy


def serialized_origins(texts: Iterable[str], key: str) -> Iterable[str]:
    """Yield origins as browsers serialise them: lower case, without default port and trailing slash. Raises
    StartupError.

    key: the configuration key that holds `texts`, for the error message.
    """
    for text in texts:
        try:
            yield serialized_origin(text)
        except ValueError as error:
            raise StartupError(f"{key}: {error}") from None


def antiforgery_options(settings: Settings) -> AntiforgeryOptions | None:
    """Return the options, or None if antiforgery tokens are neither issued nor required. Raises ConfigError."""
    tags = settings.read(AntiforgeryTags)
    options = settings.read_enabled(AntiforgeryOptions, field_tag=tags.field, token_tag=tags.token)
    if options is None or options.cookie:
        return options
    return replace(options, cookie=f".AspNetCore.Antiforgery.{_suffix(settings)}")


def _suffix(settings: Settings) -> str:
    """Return a hash of the application name, so that two applications on one host have different cookies."""
    digest = hashlib.sha256(encryption_name(settings).encode()).digest()
    return base64.urlsafe_b64encode(digest[:8]).rstrip(b"=").decode()
