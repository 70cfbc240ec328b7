"""Pages of other sites and sessions by cookie: browsers send the cookie along, whoever has written the page. So they do
with a name and password that they have asked for (HTTP Basic).

A request that changes something, a sign-in and a sign-out are refused when the browser says that they come from
elsewhere (Fetch Metadata, and the header Origin, RFC 6454). Browsers cannot be made to say otherwise by a page; what is
no browser sends neither header and has no session of somebody else's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rowcall.core.auth.options import AuthOptions
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.service.log.entry import one_line
from rowcall.service.request_context.client_address import client_reader
from rowcall.service.request_context.request_context import RequestContext, Step

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")

SAFE = frozenset({"GET", "HEAD", "OPTIONS", "QUERY"})
"""What reads only (RFC 9110, 9.2.1). QUERY is none that a page can send without being asked by CORS first."""

_DEFAULT_PORTS = {"http": ":80", "https": ":443", "ws": ":80", "wss": ":443"}
_SCHEMES = {"ws": "http", "wss": "https"}
_MOST_TOLD = 100

Refusal = Callable[[Any], None]
"""Raises `Problem` for the scope of a request that comes from elsewhere."""


def refuse_cross_site(endpoint: Endpoint, services: Services) -> Step | None:
    """Stands behind `authenticate`. None where nothing can be at stake that browsers send by themselves."""
    options = services.options.auth
    if options.cross_site is None or (endpoint.method in SAFE and not endpoint.options.login):
        return None
    check = foreign_refusal(options, services.options.forwarding)
    if endpoint.options.wants_basic:
        return lambda context: check(context.scope)
    if not options.schemes.cookies:
        return None
    signs = endpoint.options.login or endpoint.options.logout
    takes_json = endpoint.transport is Transport.BODY and endpoint.raw_body is None
    cookies = frozenset(scheme.name for scheme in options.schemes.cookies)

    def refuse(context: RequestContext) -> None:
        user = context.user
        if signs or (user is not None and user.scheme in cookies):
            check(context.scope)
            if takes_json:
                refuse_plain_text(context.scope)

    return refuse


def refuse_foreign_sessions(services: Services) -> Step | None:
    """For a route that no routine stands behind and that changes something. Stands behind `authenticate`."""
    options = services.options.auth
    if options.cross_site is None or not options.schemes.cookies:
        return None
    check = foreign_refusal(options, services.options.forwarding)
    cookies = frozenset(scheme.name for scheme in options.schemes.cookies)

    def refuse(context: RequestContext) -> None:
        if context.user is not None and context.user.scheme in cookies:
            check(context.scope)

    return refuse


def foreign_refusal(options: AuthOptions, forwarding: Forwarding) -> Refusal:
    """For whatever signs in or acts for a session."""
    trusted = frozenset() if options.cross_site is None else options.cross_site.origins
    client_of = client_reader(forwarding)
    told: set[str] = set()

    def check(scope: Any) -> None:
        origin: str | None = scope.headers.get("origin")
        site = scope.headers.get("sec-fetch-site")
        if site in ("same-origin", "none") or (origin is None and site in (None, "same-site")):
            return
        if origin is not None and (
            origin.lower() in trusted or (site != "cross-site" and origin.lower() == own(scope))
        ):
            return
        shown = one_line((origin or "cross-site")[:200])
        if shown not in told and len(told) < _MOST_TOLD:
            told.add(shown)
            log.warning("refused a request from a page of %s; Auth:TrustedOrigins lists whose pages may", shown)
        raise Problem(403, "a page of another site cannot use a session by cookie or HTTP Basic, nor sign in or out")

    def own(scope: Any) -> str:
        client = client_of(scope)
        scheme = _SCHEMES.get(client.scheme, client.scheme)
        host = client.host or scope.authority or scope.headers.get("host") or ""
        return f"{scheme}://{host}".lower().removesuffix(_DEFAULT_PORTS.get(scheme, ""))

    return check


def refuse_plain_text(scope: Any) -> None:
    """The type in which a page may send JSON anywhere without being asked by CORS first, and which `fetch` sends where
    generated clients say nothing (browsers-7). A browser that says whose page asks has been judged by that."""
    if scope.headers.get("origin") is not None or scope.headers.get("sec-fetch-site") == "same-origin":
        return
    kind = (scope.headers.get("content-type") or "").partition(";")[0].strip().lower()
    if kind == "text/plain":
        raise Problem(415, "with a session by cookie a body is application/json or a form, unless Origin says whose")
