"""Serve the API reference: the page, and the files of the viewer (swagger-ui-py) from its package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from rowcall.core.documents.options import ReferencePage
from rowcall.core.documents.reference_page import FILES, page_html
from rowcall.core.endpoint.access import ANYONE, SIGNED_IN
from rowcall.service.pipeline.fixed_route import FixedRoute, admission
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
_PROTECTION = [
    (
        "content-security-policy",
        # The viewer has styles in its elements.
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    ("x-content-type-options", "nosniff"),
]


def reference_routes(page: ReferencePage, services: Services) -> Iterator[FixedRoute]:
    """Yield the routes of the page of the API reference and of its files. If the page is closed, only signed-in users
    may read them.
    """
    access = SIGNED_IN if page.closed else ANYONE
    schemes = services.options.auth.schemes
    authenticate: tuple[Step, ...] = (services.auth.sessions.authenticate,) if schemes else ()
    ahead = (*authenticate, *admission(f"{page.path} is", access, schemes.challenge)) if page.closed else ()
    antiforgery = services.options.antiforgery
    body = page_html(page, None if antiforgery is None else antiforgery.token_path).encode()
    start = files(__package__).joinpath("assets", "reference.js").read_bytes()
    yield FixedRoute("GET", page.path, access, (*ahead, _content(body, "text/html; charset=utf-8")))
    yield FixedRoute("GET", f"{page.path}/start.js", access, (*ahead, _content(start, _TYPES[".js"])))
    for name in FILES:
        path = Path(page.folder, name)
        yield FixedRoute("GET", f"{page.path}/{name}", access, (*ahead, _file(str(path), _TYPES[path.suffix])))


def _content(body: bytes, content_type: str) -> Step:
    headers = [("content-type", content_type), ("cache-control", "no-cache"), *_PROTECTION]

    def respond(context: RequestContext) -> None:
        context.protocol.response_bytes(200, headers, body)

    return respond


def _file(path: str, content_type: str) -> Step:
    headers = [("content-type", content_type), ("cache-control", "private, max-age=3600"), *_PROTECTION]

    def respond(context: RequestContext) -> None:
        context.protocol.response_file(200, headers, path)

    return respond
