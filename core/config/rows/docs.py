"""Keys of the API reference."""

from rowcall.core.sections.keys import Key, flag, section, text

ROWS: tuple[Key, ...] = (
    section("Docs", "A page with the API reference of the endpoints, from their OpenAPI document, with try-it."),
    flag(
        "Docs:Enabled",
        False,
        "Serve the page. Needs the extra rowcall[docs], and the document at Service:OpenApiOptions:UrlPath.",
    ),
    text("Docs:Path", "/docs", "Path of the page."),
    flag("Docs:RequireAuthorization", False, "Serve the page to signed-in users only, but not the document."),
)
