"""Authenticate and authorize: the first two steps of every endpoint that is not open to anonymous callers (access-1 to
access-4, execution-2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rowcall.core.auth.claims import MULTIPLE, SIGNED_IN_AT, User, has_second_factor
from rowcall.core.auth.options import AuthOptions
from rowcall.core.auth.required_roles import RequiredRoles
from rowcall.core.endpoint.capabilities import Impersonation, ValuePlace
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem, unauthorized_problem
from rowcall.service.auth.basic import SCHEME as BASIC
from rowcall.service.auth.basic import basic_step
from rowcall.service.identity.introspected_sessions import API_KEY
from rowcall.service.identity.sessions import is_bearer
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


def authenticate(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that sets `context.user`. None: neither this endpoint nor the audit trail uses the identity of
    the caller, or no sign-in scheme is configured. With HTTP Basic, the step also refuses wrong credentials. With
    introspected sessions, it raises `Problem` if a command that checks them fails."""
    if endpoint.access.basic is not None:
        return basic_step(endpoint, services)
    limited_by = services.options.limits.policy(endpoint.options.rate_limiter)
    trail = services.options.audit_trail
    # The user of a sign-in is the one who signs in, and not that of an earlier session.
    is_recorded = trail is not None and trail.records(endpoint.options.audit) and not endpoint.options.login
    identity_used = (
        services.options.needs_caller or is_recorded or (limited_by is not None and limited_by.depends_on_user)
    )
    if not needs_identity(endpoint) and not identity_used:
        return None
    # Without a sign-in scheme no request can carry an identity.
    return services.auth.sessions.authenticate if services.options.auth.schemes else None


def needs_identity(endpoint: Endpoint) -> bool:
    """Return whether the endpoint uses the user: claims, role, upload metadata, impersonation, authorization, a
    tenant or time zone in a claim, or the owner of a job or of an idempotency key.
    """
    options = endpoint.options
    is_upload = options.upload is not None
    is_owned = options.job is not None or endpoint.recorded
    places = (source.place for source in (options.tenant, options.time_zone) if source is not None)
    claims = options.user_parameters or options.user_context or options.role_from_claim or ValuePlace.CLAIM in places
    access = endpoint.access
    return claims or is_upload or is_owned or access.impersonation is not None or not access.anonymous


def authorize(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that refuses callers who may not call the endpoint, or None if all may.

    The step raises `Problem` 401 for anonymous callers, and if a recent sign-in or a second factor is required and
    missing; 403 for users whom the endpoint does not admit. The step of an open endpoint refuses only users who act as
    another one.
    """
    if endpoint.access.anonymous:
        return _refusing_impersonation(endpoint)
    detail = _what_opens(endpoint, by_default=services.options.requires_authorization)
    auth = services.options.auth
    matching = services.options.auth.login.roles_match_users
    required = endpoint.access.required
    roles = RequiredRoles(required, roles_match_users=matching) if required else None
    refusal = _who_may(endpoint, roles)

    def require_user(context: RequestContext) -> None:
        if context.user is None:
            raise anonymous_refusal(auth, context, detail)

    def require_role(context: RequestContext) -> None:
        if context.user is None:
            raise anonymous_refusal(auth, context, detail)
        if not roles.admits(context.user):  # type: ignore[union-attr]  # the step of endpoints with roles
            raise Problem(403, refusal)

    step: Callable[[RequestContext], None] = require_user if roles is None else require_role
    if endpoint.access.second_factor:
        step = _with_second_factor(step)
    if endpoint.access.freshness is not None:
        step = _with_recent_sign_in(step, endpoint, services)
    return step if endpoint.access.impersonation is None else _with_impersonation(step, endpoint)


def _refusing_impersonation(endpoint: Endpoint) -> Step | None:
    """Return the step that refuses users who impersonate; None: the endpoint admits them."""
    return _refuse_impersonation if endpoint.access.impersonation is Impersonation.REFUSED else None


def _refuse_impersonation(context: RequestContext) -> None:
    """Raise `Problem` 403 for a user who impersonates."""
    if context.user is not None and context.user.impersonates:
        raise impersonation_refusal()


def impersonation_refusal() -> Problem:
    """Return the 403 for an action that a user must not do while impersonating another user."""
    return Problem(403, "this is not allowed while acting as another user", code="impersonation")


def refuse_api_key(user: User) -> None:
    """Raise `Problem` 403 for the owner of an API key, who must not set up credentials with it: they would still be
    valid when the key has ended."""
    if user.scheme == API_KEY:
        raise Problem(403, "an API key cannot set up credentials of its owner; sign in")


def _with_impersonation(step: Callable[[RequestContext], None], endpoint: Endpoint) -> Step:
    """Wrap the authorization step of an endpoint that begins, ends or refuses impersonations.

    If the endpoint begins or refuses impersonations, the wrapped step raises `Problem` 403 for users who impersonate
    another one; if it ends them, for users who do not. An endpoint that begins impersonations and requires no role
    refuses all users.
    """
    impersonation = endpoint.access.impersonation

    def begin(context: RequestContext) -> None:
        step(context)
        if not endpoint.access.required:
            raise Problem(403, f"{endpoint.name} has no roles whose users may act as others; list them in authorize")
        _refuse_impersonation(context)

    def end(context: RequestContext) -> None:
        step(context)
        if not context.user.impersonates:
            raise Problem(403, "this session does not act as another user")

    def refuse(context: RequestContext) -> None:
        step(context)
        _refuse_impersonation(context)

    if impersonation is Impersonation.BEGINS:
        return begin
    return end if impersonation is Impersonation.ENDS else refuse


def _with_recent_sign_in(
    step: Callable[[RequestContext], None], endpoint: Endpoint, services: Services
) -> Callable[[RequestContext], None]:
    """Wrap an authorization step for `authorize … within 5 minutes`.

    The wrapped step raises `Problem` 401 if the user signed in longer ago than `within` allows, or if the time of the
    sign-in is unknown (RFC 9470). Callers by HTTP Basic are never refused, because each request carries the password.
    """
    seconds = endpoint.access.freshness or 0.0
    # With HTTP Basic, each request carries the password. A configured scheme of the same name does not count.
    always_fresh = BASIC if services.options.auth.schemes.find(BASIC) is None else None

    def require_recent_sign_in(context: RequestContext) -> None:
        step(context)
        user: User = context.user
        if user.scheme == always_fresh or time.time() - signed_in_at(user) <= seconds:
            return
        raise sign_in_again(seconds)

    return require_recent_sign_in


def sign_in_again(seconds: float) -> Problem:
    """Return the 401 for a user who signed in longer than `seconds` ago (RFC 9470)."""
    header = f'Bearer error="insufficient_user_authentication", max_age={int(seconds)}'
    return _step_up_problem("Sign in again", header)


def _step_up_problem(title: str, header: str) -> Problem:
    """Return a 401 with the code of RFC 9470. title: says what the user has to do. header: its `WWW-Authenticate`."""
    code = "insufficient_user_authentication"
    return Problem(401, title=title, code=code, headers=(("www-authenticate", header),))


def _with_second_factor(step: Callable[[RequestContext], None]) -> Callable[[RequestContext], None]:
    """Wrap an authorization step for `second_factor`: users who have not proved a second factor get
    a 401 (RFC 9470).
    """
    header = f'Bearer error="insufficient_user_authentication", acr_values="{MULTIPLE}"'

    def require_second_factor(context: RequestContext) -> None:
        step(context)
        if not has_second_factor(context.user.claims):
            raise _step_up_problem("Prove your second factor", header)

    return require_second_factor


def signed_in_at(user: User) -> float:
    """Return the time of the user's sign-in in seconds since 1970, or minus infinity if the claim is missing or
    unusable."""
    text = user.first(SIGNED_IN_AT) or ""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 12 else float("-inf")


def share_basic(endpoints: Sequence[Endpoint]) -> bool:
    """Return whether all endpoints accept the same names and passwords by HTTP Basic; False if one does not use it.

    If so, one challenge authenticates for all of them.
    """
    first = endpoints[0].access.basic
    return first is not None and all(endpoint.access.basic == first for endpoint in endpoints)


def steps_before_selection(endpoints: Sequence[Endpoint], services: Services) -> tuple[Step, ...]:
    """Return the steps that run before the overload of a route is selected. They refuse a caller who can call none of
    the endpoints.

    If all endpoints `share_basic`, the step is their challenge. Otherwise there are no steps if one endpoint is open;
    the refusal is a challenge if the first endpoint uses HTTP Basic, else that of the first endpoint with sessions. If
    one endpoint uses HTTP Basic, a request with `Authorization` passes: only the selected endpoint can check it.

    The selected endpoint authenticates the caller again, unless all `share_basic`: a user by session is anonymous to an
    endpoint with HTTP Basic, and the reverse.
    """
    first = endpoints[0]
    challenge = basic_step(first, services) if first.access.basic is not None else None
    if challenge is not None and share_basic(endpoints):
        return (challenge,)
    if any(endpoint.access.anonymous for endpoint in endpoints):
        return ()
    by_session = [endpoint for endpoint in endpoints if endpoint.access.basic is None]
    by_basic = len(by_session) < len(endpoints)
    checks = [check for endpoint in by_session if (check := authorize(endpoint, services)) is not None]

    def require_any(context: RequestContext) -> Waiting:
        if by_basic and "authorization" in context.scope.headers:
            return None  # only the selected endpoint can check these credentials
        refusal: Problem | None = None
        for check in checks:
            try:
                check(context)
            except Problem as problem:
                refusal = refusal or problem
            else:
                return None
        if challenge is not None:
            return challenge(context)
        if refusal is not None:
            raise refusal
        return None

    authenticating = authenticate(by_session[0], services) if by_session else None
    return (require_any,) if authenticating is None else (authenticating, require_any)


def _who_may(endpoint: Endpoint, required: RequiredRoles | None) -> str:
    """Return the detail of the 403 for a signed-in user: the roles that the endpoint admits, without names of users.
    required: as the endpoint lists them; None: it lists none."""
    if required is None or not required.roles:
        return f"{endpoint.name} is for other users"
    return f"{endpoint.name} is for users with one of the roles {', '.join(required.roles)}"


def anonymous_refusal(auth: AuthOptions, context: RequestContext, detail: str) -> Problem:
    """Return the 401 for an anonymous caller, with the challenge of the service. detail: who may call."""
    return unauthorized_problem(_with_error(auth.schemes.challenge, context), detail)


def _with_error(challenge: str, context: RequestContext) -> str:
    """Return the challenge; if it is `Bearer` and the request brought a bearer token, with `invalid_token` (RFC 6750,
    section 3.1).
    """
    header = context.scope.headers.get("authorization")
    if challenge == "Bearer" and header is not None and is_bearer(header):
        return 'Bearer error="invalid_token"'
    return challenge


def _what_opens(endpoint: Endpoint, *, by_default: bool) -> str:
    """Return the detail of the 401: who may call the endpoint and, if it requires neither roles nor a database role,
    which setting opens it to anonymous callers. by_default: the configuration requires authorization of all endpoints
    (`Service:RequiresAuthorization`)."""
    if endpoint.access.required:
        return f"{endpoint.name} is for signed-in users with one of the roles {', '.join(endpoint.access.required)}"
    if endpoint.access.database_role:
        return f"{endpoint.name} is for signed-in users with a database role"
    annotation = f"the annotation allow_anonymous on {endpoint.routine.identity}"
    key = " or the key Service:RequiresAuthorization=false" if by_default else ""
    return f"{endpoint.name} is for signed-in users; {annotation}{key} opens it"
