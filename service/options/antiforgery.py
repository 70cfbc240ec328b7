"""Read `Antiforgery`: where antiforgery tokens are sent, and whether they are required (browsers-6 to browsers-10)."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace

from rowcall.core.auth.antiforgery import AntiforgeryOptions
from rowcall.core.config import Settings
from rowcall.core.operations.static_files import AntiforgeryTags
from rowcall.service.options.application_name import application_name


def antiforgery_options(settings: Settings) -> AntiforgeryOptions | None:
    """Return the options, or None if antiforgery tokens are neither issued nor required. Raises ConfigError."""
    tags = settings.read(AntiforgeryTags)
    options = settings.read_enabled(AntiforgeryOptions, field_tag=tags.field, token_tag=tags.token)
    if options is None or options.cookie:
        return options
    return replace(options, cookie=f".AspNetCore.Antiforgery.{_suffix(settings)}")


def _suffix(settings: Settings) -> str:
    """Return a hash of the application name, so that two applications on one host have different cookies."""
    digest = hashlib.sha256(application_name(settings).encode()).digest()
    return base64.urlsafe_b64encode(digest[:8]).rstrip(b"=").decode()
