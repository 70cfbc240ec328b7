"""The page with the API reference: its options and its HTML."""

from __future__ import annotations

import html

from rowcall.core.data.record import Record
from rowcall.core.sections.declaration import flag, section, text
from rowcall.core.sections.values import path_like

FILES = ("swagger-ui.css", "swagger-ui-bundle.js")
"""Files of the viewer that the page loads."""


def _page_path(text: str) -> str | None:
    return path_like("/docs")(text.rstrip("/"))


@section("Docs", "A page with the API reference of the endpoints, from their OpenAPI document, with try-it.")
class ReferencePage(Record):
    """Options of the page with the API reference.

    document: URL path of the OpenAPI document. folder: directory of `FILES` on this host. path: URL path of the page.
    """

    document: str
    title: str
    folder: str

    enabled: bool = flag(
        "Enabled",
        False,
        "Serve the page. Needs the extra rowcall[docs], and the document at Service:OpenApiOptions:UrlPath.",
    )
    path: str = text("Path", "/docs", "Path of the page.", convert=_page_path)
    closed: bool = flag("RequireAuthorization", False, "Serve the page to signed-in users only, but not the document.")


def page_html(page: ReferencePage, token_path: str | None) -> str:
    """Return the HTML of the page. It loads files of this service only, and contains no script of its own.

    token_path: URL path at which the page fetches an antiforgery token before each request that changes something;
    None: requests have no token.
    """
    title, path = html.escape(page.title), html.escape(page.path)
    tokens = f' data-antiforgery="{html.escape(token_path)}"' if token_path else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="{path}/swagger-ui.css"></head>'
        f'<body><div id="reference" data-document="{html.escape(page.document)}"{tokens}></div>'
        f'<script src="{path}/swagger-ui-bundle.js"></script><script src="{path}/start.js"></script></body></html>'
    )
