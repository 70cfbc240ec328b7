"""Keys of antiforgery tokens, which tie a form to the page that contains it."""

from rowcall.core.config.keys import Key, flag, section, text

ROWS: tuple[Key, ...] = (
    section("Antiforgery", "Tokens without which forms and sessions by cookie change nothing."),
    flag("Antiforgery:Enabled", False, "Issue tokens, and ask for them."),
    flag("Antiforgery:Enforce", True, "Refuse what comes without a token. false issues tokens only."),
    text("Antiforgery:TokenPath", None, "Path where GET gives a token as JSON. null: only pages have tokens."),
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
