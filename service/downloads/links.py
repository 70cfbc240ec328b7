"""Links to a download: addresses with which any client can get one file for a time, in the name of the caller who got
the link.

The response to a request with `?link` is a link: the same URL with `?link=…`. The value contains path, query string,
claims, expiry and tenant, encrypted with the key ring.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from urllib.parse import quote

import orjson

from rowcall.core.auth.claims import User
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Protector
from rowcall.service.request_context.changed_query import ChangedQuery, take_parameter
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.request_context.surroundings import tenant_of

PARAMETER = "link"
_UNQUOTED = "/:@!$&'()*+,;=~"
"""Characters of a path that need not be encoded (RFC 3986, 3.3)."""
INVALID = "the link is not valid, or has expired"


def open_link(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that decrypts the link in the query string, removes it from there, and sets the caller that it
    names. The step runs after authentication. None: the endpoint has no links.

    The step raises `Problem` 403 for a link that is not valid, has expired, or is of another tenant. Requests without a
    link are unchanged.
    """
    if _lifetime(endpoint) is None:
        return None
    keys = services.auth.keys
    protector = Protector(keys, "download links")
    identity = services.options.auth.identity
    name = endpoint.name

    def open_sealed(context: RequestContext) -> Waiting:
        if PARAMETER not in context.scope.query_string:
            return None
        sealed, rest = take_parameter(context.scope.query_string, PARAMETER)
        if not sealed:
            return None  # a link is asked for
        try:
            use(context, protector.open(sealed), rest)
        except UnknownKeyError:
            return open_later(context, sealed, rest)
        except (SealError, ValueError):
            raise Problem(403, INVALID) from None
        return None

    async def open_later(context: RequestContext, sealed: str, rest: str) -> None:
        """Read the key ring again, and open the link."""
        await keys.read_again()
        try:
            use(context, protector.open(sealed), rest)
        except (SealError, ValueError):
            raise Problem(403, INVALID) from None

    def use(context: RequestContext, content: bytes, rest: str) -> None:
        """Set the caller of a decrypted link. Raises `Problem` 403 or ValueError for a link that is not valid here."""
        scope = context.scope
        of, path, query, claims, expires, *others = orjson.loads(content)
        if (of, path, query) != (name, scope.path, rest) or expires < time.time():
            raise Problem(403, INVALID)
        context.scope = ChangedQuery(scope, rest)
        context.user = None if claims is None else User(tuple(map(tuple, claims)), identity, "link")
        if tenant_of(endpoint.options.tenant, context) != (others[0] if others else None):
            raise Problem(403, INVALID)

    return open_sealed


def issue_link(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that responds with a new link if the request asks for one (`?link`). It follows authorization,
    and raises `NoKeyError`. None: the endpoint has no links."""
    seconds = _lifetime(endpoint)
    if seconds is None:
        return None
    protector = Protector(services.auth.keys, "download links")
    name = endpoint.name

    def respond_with_link(context: RequestContext) -> None:
        scope = context.scope
        if PARAMETER not in scope.query_string:
            return
        requested, rest = take_parameter(scope.query_string, PARAMETER)
        if requested is None:
            return
        user = context.user
        claims = None if user is None else [list(claim) for claim in user.claims]
        expires = int(time.time() + seconds)
        tenant = tenant_of(endpoint.options.tenant, context)
        sealed = protector.seal(orjson.dumps([name, scope.path, rest, claims, expires, tenant]))
        before = f"{rest}&" if rest else ""
        url = f"{quote(scope.path, safe=_UNQUOTED)}?{before}{PARAMETER}={sealed}"
        moment = datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        headers = [("content-type", "application/json"), ("cache-control", "no-store")]
        context.protocol.response_bytes(200, headers, orjson.dumps({"url": url, "expires": moment}))
        context.answered = True

    return respond_with_link


def _lifetime(endpoint: Endpoint) -> float | None:
    """Return the seconds for which links are valid; None: the endpoint has no links."""
    download = endpoint.options.download
    return None if download is None else download.link_seconds
