"""Require antiforgery tokens for forms and for changes by a session with a cookie (only pages of this service have
tokens).

This check complements the cross-site check (`service.auth.cross_site`). That one relies on headers in which browsers
name the page; a token is verified whatever the browser sends, and also protects forms of anonymous callers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import orjson

from rowcall.core.auth.claims import User
from rowcall.core.endpoint.access import ANYONE
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.service.auth.cross_site import SAFE, refuse_foreign_sessions
from rowcall.service.identity.antiforgery import Antiforgery
from rowcall.service.identity.identity import Identity
from rowcall.service.identity.introspected_sessions import API_KEY
from rowcall.service.identity.sessions import is_bearer
from rowcall.service.pipeline.fixed_route import FixedRoute
from rowcall.service.request.binding import body_limit
from rowcall.service.request.body import read_body
from rowcall.service.request.body_thread import LARGE_BODY, run_in_body_thread
from rowcall.service.request.form_fields import FORMS, kind_of, take_field
from rowcall.service.request.forms import MULTIPART, URLENCODED
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

FIELDS = frozenset({URLENCODED, MULTIPART})


def require_antiforgery_token(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the antiforgery step of an endpoint. None: antiforgery is off, the method only reads (`SAFE`), or
    `services` are those of internal subrequests, which come from no browser.

    The step raises `Problem` 400 for a missing or invalid token, and the errors of `caller`. It follows `authorize`,
    because it may read the body of a form; then it also raises the errors of `read_body`, such as 413.
    """
    guard = services.auth.antiforgery
    if guard is None or endpoint.method in SAFE or not services.limited:
        return None
    options = endpoint.options
    return _AntiforgeryCheck(
        guard,
        services,
        signs_out=options.logout,
        # Uploaded files are processed while they arrive, before any fields behind them are known.
        reads_forms=guard.options.reads_forms and options.upload is None,
        # A body that is proxied or passed to the routine unparsed must stay unchanged.
        strips=options.proxy is None and endpoint.raw_body is None,
        limit=body_limit(endpoint, services),
    ).ask


def steps_of_fixed_routes(services: Services) -> tuple[Step, ...]:
    """Return the steps that authenticate the caller and refuse pages of other sites, without reading a body.

    They are for routes that change something and have no routine. They raise `Problem`: 403 for a page of another site,
    400 for a missing or invalid antiforgery token.
    """
    authenticating = (services.auth.sessions.authenticate,) if services.options.auth.schemes else ()
    foreign = refuse_foreign_sessions(services)
    guard = services.auth.antiforgery
    asking = () if guard is None else (_AntiforgeryCheck(guard, services).ask,)
    return (*authenticating, *(() if foreign is None else (foreign,)), *asking)


class _AntiforgeryCheck:
    """The antiforgery check of one endpoint.

    signs_out: requests to sign out are checked without a session, too. reads_forms: the token may be a form field.
    strips: this field is removed from the body. limit: most bytes of the body.
    """

    def __init__(
        self,
        guard: Antiforgery,
        services: Services,
        *,
        signs_out: bool = False,
        reads_forms: bool = False,
        strips: bool = False,
        limit: int = 0,
    ) -> None:
        self._guard = guard
        self._enforced = guard.options.enforced
        self._identity = services.auth
        self._cookies = frozenset(scheme.name for scheme in services.options.auth.schemes.cookies)
        self._signs_out = signs_out
        self._reads_forms = reads_forms
        self._strips = strips
        self._limit = limit
        self._form_limit = services.options.http.limits.form_body_size

    def ask(self, context: RequestContext) -> Waiting:
        """The step: raise `Problem` 400 if the request needs a token, and has none or an invalid one. If forms are
        read, the body of a form is stored in `context.body`. Also raises the errors of `read_body`, such as 413, and of
        `caller`."""
        scope = context.scope
        kind = kind_of(scope)
        by_cookie = context.user is not None and context.user.scheme in self._cookies
        header = scope.headers.get("authorization")
        # A page of another site cannot add this header. If the bearer token is not one of this service, the cookie
        # counts.
        free = not self._enforced or (header is not None and is_bearer(header) and not by_cookie)
        if kind in FORMS or (not free and (by_cookie or self._signs_out)):
            return self._ask(context, kind, free=free)
        return None

    async def _ask(self, context: RequestContext, kind: bytes, *, free: bool) -> None:
        """Check a request as `ask` does, with the token of the header or, if that is missing, of the form field.

        If forms are read, the whole body is stored in `context.body`, without the field if `strips` is set. Raises
        `Problem` 400 for a missing or invalid token, and the errors of `read_body`, such as 413, and of `caller`. kind:
        media type of the body, without parameters. free: the request needs no token; only the field is removed.
        """
        scope = context.scope
        options = self._guard.options
        token = scope.headers.get(options.header.lower())
        if kind in FIELDS and self._reads_forms:
            if context.body is None:
                limit = self._limit if kind != URLENCODED or not self._strips else min(self._limit, self._form_limit)
                context.body = await read_body(scope, context.protocol, limit)
            large = len(context.body) > LARGE_BODY
            arguments = (scope, context.body, options.field)
            in_form, rest = await run_in_body_thread(take_field, *arguments) if large else take_field(*arguments)
            if in_form is not None:
                token = token or in_form
                if self._strips:
                    context.body = rest
        if free:
            return
        user = await caller(context, self._identity)
        if user is not None and user.scheme == API_KEY:
            return  # a page of another site cannot add the header of API keys either
        if kind not in FORMS and (user is None or user.scheme not in self._cookies):
            return
        if not token:
            place = f" or the form field {options.field}" if self._reads_forms else ""
            raise Problem(400, f"an antiforgery token in the header {options.header}{place} is missing")
        fault = await self._guard.fault(scope, user, token)
        if fault is not None:
            raise Problem(400, fault)


async def caller(context: RequestContext, identity: Identity) -> User | None:
    """Return the user whom the session or the API key of the request identifies, or None if it has neither.
    `context.user` is not changed, and no session is renewed. With introspected sessions, raises `Problem` if a command
    that checks them fails.

    Credentials for which browsers prompt (HTTP Basic) are ignored.
    """
    probe = RequestContext(context.scope, context.protocol)
    waiting = identity.sessions.authenticate(probe)
    if waiting is not None:
        await waiting
    user: User | None = probe.user
    return user


def token_routes(identity: Identity) -> Iterator[FixedRoute]:
    """Yield the route that issues antiforgery tokens to scripts, if one is configured."""
    guard = identity.antiforgery
    path = None if guard is None else guard.options.token_path
    if guard is None or path is None:
        return
    options = guard.options

    async def send_token(context: RequestContext) -> None:
        issued = guard.issue(context.scope, await caller(context, identity))
        content = {"fieldName": options.field, "headerName": options.header, "token": issued.token}
        headers = [("content-type", "application/json"), *issued.headers]
        context.protocol.response_bytes(200, headers, orjson.dumps(content))

    yield FixedRoute("GET", path, ANYONE, (send_token,))
