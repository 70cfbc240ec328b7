"""Forms, and what a session by cookie changes, need a token that only a page of this service can have.

Stands beside the refusal of other sites (`service.auth.cross_site`), which believes what browsers say about a page; a
token is believed whatever the browser says, and guards forms that nobody has to be signed in for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import orjson

from rowcall.core.auth.claims import User
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.service.auth.cross_site import SAFE, refuse_foreign_sessions
from rowcall.service.identity.antiforgery import Antiforgery
from rowcall.service.identity.identity import Identity
from rowcall.service.identity.introspected_sessions import API_KEY
from rowcall.service.identity.sessions import is_bearer
from rowcall.service.request.binding import body_limit
from rowcall.service.request.body import read_body
from rowcall.service.request.body_thread import LARGE_BODY, aside
from rowcall.service.request.form_fields import FORMS, kind_of, take_field
from rowcall.service.request.forms import MULTIPART, URLENCODED
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

FIELDS = frozenset({URLENCODED, MULTIPART})


def ask_for_token(endpoint: Endpoint, services: Services) -> Step | None:
    """Stands behind `authorize`, as it may read the body. Calls from inside the service come from no browser."""
    guard = services.auth.antiforgery
    if guard is None or endpoint.method in SAFE or not services.limited:
        return None
    options = endpoint.options
    return _Asking(
        guard,
        services,
        signs_out=options.logout,
        # Files are taken as they arrive, so nothing is known of the fields behind them.
        reads_forms=guard.options.reads_forms and options.upload is None,
        # What goes on to another service, or to the routine as it came, stays as it is.
        strips=options.proxy is None and endpoint.raw_body is None,
        limit=body_limit(endpoint, services),
    ).ask


def guards(services: Services) -> tuple[Step, ...]:
    """Who is calling, and that no page of another site has made him, for a route that no routine stands behind and that
    changes something. Nothing of a body is read."""
    authenticating = (services.auth.sessions.authenticate,) if services.options.auth.schemes else ()
    foreign = refuse_foreign_sessions(services)
    guard = services.auth.antiforgery
    asking = () if guard is None else (_Asking(guard, services).ask,)
    return (*authenticating, *(() if foreign is None else (foreign,)), *asking)


class _Asking:
    """Of one endpoint."""

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
        self._form_limit = services.options.http.form_body_limit

    def ask(self, context: RequestContext) -> Waiting:
        scope = context.scope
        kind = kind_of(scope)
        by_cookie = context.user is not None and context.user.scheme in self._cookies
        header = scope.headers.get("authorization")
        # No page of another site can add this header. (A cookie counts where the bearer token is none of ours.)
        free = not self._enforced or (header is not None and is_bearer(header) and not by_cookie)
        if kind in FORMS or (not free and (by_cookie or self._signs_out)):
            return self._ask(context, kind, free=free)
        return None

    async def _ask(self, context: RequestContext, kind: bytes, *, free: bool) -> None:
        scope = context.scope
        options = self._guard.options
        token = scope.headers.get(options.header.lower())
        if kind in FIELDS and self._reads_forms:
            if context.body is None:
                limit = self._limit if kind != URLENCODED or not self._strips else min(self._limit, self._form_limit)
                context.body = await read_body(scope, context.protocol, limit)
            large = len(context.body) > LARGE_BODY
            taken = (scope, context.body, options.field)
            in_form, rest = await aside(take_field, *taken) if large else take_field(*taken)
            if in_form is not None:
                token = token or in_form
                if self._strips:
                    context.body = rest
        if free:
            return
        user = await caller(context, self._identity)
        if user is not None and user.scheme == API_KEY:
            return  # no page can add that header either
        if kind not in FORMS and (user is None or user.scheme not in self._cookies):
            return
        if not token:
            place = f" or the form field {options.field}" if self._reads_forms else ""
            raise Problem(400, f"an antiforgery token in the header {options.header}{place} is missing")
        fault = await self._guard.fault(scope, user, token)
        if fault is not None:
            raise Problem(400, fault)


async def caller(context: RequestContext, identity: Identity) -> User | None:
    """Whose session it is, as pages see it: without credentials that browsers ask for. Nothing is renewed by asking."""
    seen = RequestContext(context.scope, context.protocol)
    waiting = identity.sessions.authenticate(seen)
    if waiting is not None:
        await waiting
    user: User | None = seen.user
    return user


def token_routes(identity: Identity) -> Iterator[tuple[str, str, tuple[Step, ...]]]:
    """Method, path and steps of what gives a token to scripts."""
    guard = identity.antiforgery
    path = None if guard is None else guard.options.token_path
    if guard is None or path is None:
        return
    options = guard.options

    async def tell(context: RequestContext) -> None:
        issued = guard.issue(context.scope, await caller(context, identity))
        told = {"fieldName": options.field, "headerName": options.header, "token": issued.token}
        headers = [("content-type", "application/json"), *issued.headers]
        context.protocol.response_bytes(200, headers, orjson.dumps(told))

    yield "GET", path, (tell,)
