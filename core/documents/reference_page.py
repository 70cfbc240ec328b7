"""The HTML of the page with the API reference."""

from __future__ import annotations

import html

from rowcall.core.documents.options import ReferencePage

FILES = ("swagger-ui.css", "swagger-ui-bundle.js")
"""Files of the viewer that the page loads."""


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
