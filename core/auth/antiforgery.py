"""Options of antiforgery: where its tokens travel, and whether they are required (browsers-6 to browsers-10)."""

from __future__ import annotations

from operator import not_

from rowcall.core.sections.declaration import flag, section, text
from rowcall.core.sections.values import HEADER_NAME


def _path(text: str | None) -> str | None:
    """Return `text`, or None for None. Raises ValueError for a text that does not begin with `/`."""
    if text is not None and not text.startswith("/"):
        raise ValueError(f"{text!r} is no path; a path begins with /")
    return text


def _token(text: str | None) -> str:
    """Return `text` if it is a token (RFC 9110, 5.6.2); an empty text for None. Raises ValueError for another text."""
    if text is not None and not HEADER_NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a valid HTTP token")
    return text or ""


@section("Antiforgery", "Antiforgery tokens, which requests of forms and cookie sessions need to change data.")
class AntiforgeryOptions:
    """Options of antiforgery."""

    enabled: bool = flag("Enabled", False, "Issue tokens, and require them.")
    enforced: bool = flag("Enforce", True, "Refuse requests without a token. false: only issue tokens.")
    token_path: str | None = text(
        "TokenPath", None, "Path at which GET returns a token as JSON. null: tokens are only in pages.", convert=_path
    )
    cookie: str = text(
        "CookieName",
        None,
        "Name of the cookie. null: `.AspNetCore.Antiforgery.` and a hash of the application name.",
        convert=_token,
    )
    field: str = text("FormFieldName", "__RequestVerificationToken", "Form field that carries the token.")
    header: str = text(
        "HeaderName", "RequestVerificationToken", "Request header that carries the token.", convert=_token
    )
    reads_forms: bool = flag(
        "SuppressReadingTokenFromFormBody", False, "Read the token from the header only.", convert=not_
    )
    refuses_frames: bool = flag(
        "SuppressXFrameOptionsHeader", False, "Leave out `X-Frame-Options: SAMEORIGIN`.", convert=not_
    )
    field_tag: str | None = None
    """Placeholder in pages for the name of the form field."""
    token_tag: str | None = None
    """Placeholder in pages for the token."""
