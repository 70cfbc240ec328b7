"""Keys of antiforgery tokens, which tie a form to the page that contains it."""

from rowcall.core.sections.keys import Key, flag, section, text

ROWS: tuple[Key, ...] = (
    section("Antiforgery", "Antiforgery tokens, which requests of forms and cookie sessions need to change data."),
    flag("Antiforgery:Enabled", False, "Issue tokens, and require them."),
    flag("Antiforgery:Enforce", True, "Refuse requests without a token. false: only issue tokens."),
    text("Antiforgery:TokenPath", None, "Path at which GET returns a token as JSON. null: tokens are only in pages."),
    text(
        "Antiforgery:CookieName",
        None,
        "Name of the cookie. null: `.AspNetCore.Antiforgery.` and a hash of the application name.",
    ),
    text("Antiforgery:FormFieldName", "__RequestVerificationToken", "Form field that carries the token."),
    text("Antiforgery:HeaderName", "RequestVerificationToken", "Request header that carries the token."),
    flag("Antiforgery:SuppressReadingTokenFromFormBody", False, "Read the token from the header only."),
    flag("Antiforgery:SuppressXFrameOptionsHeader", False, "Leave out `X-Frame-Options: SAMEORIGIN`."),
)
