"""Read `Antiforgery`: where antiforgery tokens are sent, and whether they are required (browsers-6 to browsers-10)."""

from __future__ import annotations

import base64
import hashlib
import re

from rowcall.core.auth.antiforgery import AntiforgeryOptions
from rowcall.core.config import Settings
from rowcall.service.options.application_name import application_name
from rowcall.service.startup_error import StartupError

_P = "Antiforgery:"
_PARSE = "StaticFiles:ParseContentOptions:"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def antiforgery_options(settings: Settings) -> AntiforgeryOptions | None:
    """Return the options, or None if antiforgery tokens are neither issued nor required. Raises StartupError."""
    if not settings.flag(_P + "Enabled"):
        return None
    path = settings.text_or_none(_P + "TokenPath") or None
    if path is not None and not path.startswith("/"):
        raise StartupError(f"{_P}TokenPath: {path!r} is no path; a path begins with /")
    cookie = settings.text_or_none(_P + "CookieName") or f".AspNetCore.Antiforgery.{_suffix(settings)}"
    header = settings.text(_P + "HeaderName")
    for key, name in (("CookieName", cookie), ("HeaderName", header)):
        if not _TOKEN.fullmatch(name):
            raise StartupError(f"{_P}{key}: {name!r} is not a valid HTTP token")
    field = settings.text(_P + "FormFieldName")
    if not field:
        raise StartupError(f"{_P}FormFieldName: a form field has a name")
    return AntiforgeryOptions(
        cookie=cookie,
        field=field,
        header=header,
        reads_forms=not settings.flag(_P + "SuppressReadingTokenFromFormBody"),
        refuses_frames=not settings.flag(_P + "SuppressXFrameOptionsHeader"),
        enforced=settings.flag(_P + "Enforce"),
        token_path=path,
        field_tag=settings.text_or_none(_PARSE + "AntiforgeryFieldName") or None,
        token_tag=settings.text_or_none(_PARSE + "AntiforgeryToken") or None,
    )


def _suffix(settings: Settings) -> str:
    """Return a hash of the application name, so that two applications on one host have different cookies."""
    digest = hashlib.sha256(application_name(settings).encode()).digest()
    return base64.urlsafe_b64encode(digest[:8]).rstrip(b"=").decode()
