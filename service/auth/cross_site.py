"""Refuse requests from pages of other sites that use a session by cookie or HTTP Basic.

Browsers send cookies, and credentials for which they have prompted (HTTP Basic), with the requests of any page. A
request that changes something, a sign-in and a sign-out are refused if the browser states that they come from another
site (Fetch Metadata, and the header Origin, RFC 6454). A page cannot make a browser send other values. A client that is
not a browser sends neither header, and has no session of another user.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowcall.core.auth.options import AuthOptions, CrossSite
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.pipeline.fixed_route import with_limit
from rowcall.service.request_context.client_address import client_reader
from rowcall.service.request_context.header_values import read_header
from rowcall.service.request_context.request_context import RequestContext, Step

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")

SAFE = frozenset({"GET", "HEAD", "OPTIONS", "QUERY"})
"""Methods that only read (RFC 9110, 9.2.1). A page can send QUERY to another site only after a CORS preflight."""

_DEFAULT_PORTS = {"http": ":80", "https": ":443", "ws": ":80", "wss": ":443"}
_SCHEMES = {"ws": "http", "wss": "https"}
_MOST_LOGGED = 100
"""Most origins about which a check warns."""

Refusal = Callable[[Any], None]
"""A function that raises `Problem` for the scope of a request from another site."""


def refuse_cross_site(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the cross-site step of an endpoint, which follows `authenticate`. It checks requests of callers who are
    signed in by cookie, and all requests to an endpoint that accepts HTTP Basic or signs in or out.

    The step raises `Problem` 403 for a page of another site. At a JSON endpoint without HTTP Basic, it also raises 415
    as `refuse_plain_text` does. None: the check is off, the method only reads (`SAFE`) and the endpoint does not sign
    in or out, or no credentials that browsers send by themselves are accepted.
    """
    options = services.options.auth
    signs_in_or_out = endpoint.options.login or endpoint.options.logout
    if options.cross_site is None or (endpoint.method in SAFE and not signs_in_or_out):
        return None
    check = foreign_refusal(options, services.options.forwarding, endpoint.name)
    if endpoint.access.basic is not None:
        return lambda context: check(context.scope)
    if not options.schemes.cookies:
        return None
    takes_json = endpoint.transport is Transport.BODY and endpoint.raw_body is None
    cookies = frozenset(scheme.name for scheme in options.schemes.cookies)

    def refuse(context: RequestContext) -> None:
        user = context.user
        if signs_in_or_out or (user is not None and user.scheme in cookies):
            check(context.scope)
            if takes_json:
                refuse_plain_text(context.scope)

    return refuse


def refuse_foreign_sessions(services: Services) -> Step | None:
    """Return the cross-site step for routes that change something and have no routine. It follows `authenticate`, and
    raises `Problem` 403 if a page of another site uses a session by cookie.

    None: there is no session by cookie, or the check is off.
    """
    options = services.options.auth
    if options.cross_site is None or not options.schemes.cookies:
        return None
    check = foreign_refusal(options, services.options.forwarding)
    cookies = frozenset(scheme.name for scheme in options.schemes.cookies)

    def refuse(context: RequestContext) -> None:
        if context.user is not None and context.user.scheme in cookies:
            check(context.scope)

    return refuse


def foreign_refusal(options: AuthOptions, forwarding: Forwarding, name: str | None = None) -> Refusal:
    """Return the check for requests that sign in or use a session. Given the scope of a request, it raises `Problem`
    403 if the request comes from a page of another site whose origin is not trusted. A request without the headers
    `Origin` and `Sec-Fetch-Site` passes.

    options: if the check is off in them (`cross_site` is None), do not call this: the result would refuse all other
    sites. name: method and path template of the endpoint, for the log, because the path of a request may contain secret
    values; None: those of the request are logged, as the path of a fixed route contains no values.
    """
    trusted = frozenset() if options.cross_site is None else options.cross_site.origins
    client_of = client_reader(forwarding)
    logged: set[str] = set()

    def check(scope: Any) -> None:
        origin = read_header(scope.headers, "origin")
        site = scope.headers.get("sec-fetch-site")
        if site in ("same-origin", "none") or (origin is None and site in (None, "same-site")):
            return
        if origin is not None and (
            origin.lower() in trusted or (site != "cross-site" and origin.lower() == request_origin(scope))
        ):
            return
        # A page cannot use up the places of other origins by requests without an origin, which share one place.
        logged_origin = escape_unprintable((origin or "")[:200])
        if logged_origin not in logged and len(logged) < _MOST_LOGGED:
            logged.add(logged_origin)
            log.warning("%s", _warning(name or f"{scope.method} {escape_unprintable(scope.path[:200])}", logged_origin))
        raise Problem(403, "a page of another site cannot use a session by cookie or HTTP Basic, nor sign in or out")

    def request_origin(scope: Any) -> str:
        client = client_of(scope)
        scheme = _SCHEMES.get(client.scheme, client.scheme)
        host = client.host or scope.authority or scope.headers.get("host") or ""
        return f"{scheme}://{host}".lower().removesuffix(_DEFAULT_PORTS.get(scheme, ""))

    return check


def _warning(target: str, origin: str) -> str:
    """Return what was refused and how to allow it. target: method and path. origin: the header `Origin`; empty: it is
    missing, as in a request by GET that a link, a redirect or an image causes."""
    if not origin:
        return (
            f"refused {target}, to which a link, a redirect or an image of another site leads; such a request names no "
            "origin, so Auth:TrustedOrigins cannot allow it: let the link lead to a page of this service that sends a "
            "POST"
        )
    if origin.lower() == "null":
        return (
            f"refused {target} from a page with the origin null, such as a file or a sandboxed frame; it cannot be "
            "distinguished from those of others: serve the page from an origin of its own, and add that to "
            "Auth:TrustedOrigins"
        )
    return f"refused a request from a page of {origin}; to allow it, add the origin to Auth:TrustedOrigins"


def refuse_plain_text(scope: Any) -> None:
    """Raise `Problem` 415 for a body of type text/plain, unless the browser states the origin of the page
    (browsers-7).

    A page can send JSON of this type to any site without a CORS preflight, and `fetch` uses it if a generated client
    sets no type. If the browser states the origin, the cross-site check has judged the request already.
    """
    if scope.headers.get("origin") is not None or scope.headers.get("sec-fetch-site") == "same-origin":
        return
    kind = (read_header(scope.headers, "content-type") or "").partition(";")[0].strip().lower()
    if kind == "text/plain":
        raise Problem(
            415,
            "a request with a session cookie and without the header Origin must have a body of type application/json "
            "or a form",
        )


def steps_before_sign_in(
    services: Services, rate_limiter: str | None, origins: frozenset[str] = frozenset()
) -> tuple[Step, ...]:
    """Return the steps that limit the rate and authenticate (`with_limit`), and refuse requests from pages of other
    sites.

    rate_limiter: name of a policy; None: the rate is not limited. origins: whose pages may use sessions, beside those
    of the configuration.
    """
    auth = services.options.auth
    authenticating = (services.auth.sessions.authenticate,) if auth.schemes else ()
    steps = with_limit(services, rate_limiter, authenticating)
    if auth.cross_site is not None and auth.schemes.cookies:
        trusted = CrossSite(auth.cross_site.origins | origins)
        check = foreign_refusal(replace(auth, cross_site=trusted), services.options.forwarding)
        return (*steps, lambda context: check(context.scope))
    return steps
