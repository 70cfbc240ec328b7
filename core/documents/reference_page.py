"""The page with the API reference: what it is served with, and its HTML."""

from __future__ import annotations

import html
from dataclasses import dataclass

from rowcall.core.data.record import Record

FILES = ("swagger-ui.css", "swagger-ui-bundle.js")
"""Files of the viewer that the page loads."""


@dataclass(frozen=True, slots=True)
class ReferencePage(Record):
    """The API reference as a page. path: of the page. document: path of the OpenAPI document. folder: of the viewer's
    files."""

    path: str
    document: str
    title: str
    folder: str
    closed: bool = False
    """For signed-in users only."""


def page_html(page: ReferencePage) -> str:
    """Return the page. It loads nothing from elsewhere, and contains no script of its own."""
    title, path = html.escape(page.title), html.escape(page.path)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="{path}/swagger-ui.css"></head>'
        f'<body><div id="reference" data-document="{html.escape(page.document)}"></div>'
        f'<script src="{path}/swagger-ui-bundle.js"></script><script src="{path}/start.js"></script></body></html>'
    )
