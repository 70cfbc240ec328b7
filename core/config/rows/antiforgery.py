"""Tokens that tie a form to the page that showed it."""

from rowcall.core.config.keys import Key, flag, pending, section, text

ROWS: tuple[Key, ...] = pending(
    section("Antiforgery", "Anti-forgery tokens of forms that upload."),
    flag("Antiforgery:Enabled", False, "Ask for a token."),
    text(
        "Antiforgery:CookieName",
        None,
        "Name of the cookie. null makes one up that begins with `.AspNetCore.Antiforgery.`.",
    ),
    text("Antiforgery:FormFieldName", "__RequestVerificationToken", "Form field that carries the token."),
    text("Antiforgery:HeaderName", "RequestVerificationToken", "Request header that carries the token."),
    flag("Antiforgery:SuppressReadingTokenFromFormBody", False, "Look for the token in the header only."),
    flag("Antiforgery:SuppressXFrameOptionsHeader", False, "Leave out `X-Frame-Options: SAMEORIGIN`."),
)
