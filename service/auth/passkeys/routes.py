"""The six passkey endpoints (passkeys-1 to passkeys-10): who may call them, and their steps."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.core.auth.passkeys import PasskeyOptions
from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.core.endpoint.capabilities import Impersonation
from rowcall.core.errors.problems import Problem
from rowcall.service.auth.access import impersonation_refusal, refuse_api_key
from rowcall.service.auth.cross_site import steps_before_sign_in
from rowcall.service.auth.passkeys.challenge_store import ChallengeStore, HostChallengeStore
from rowcall.service.auth.passkeys.commands import Transactions
from rowcall.service.auth.passkeys.completion import CompletionEndpoints
from rowcall.service.auth.passkeys.options import OptionsEndpoints
from rowcall.service.auth.passkeys.relying_party import RelyingParty
from rowcall.service.database.database import Database
from rowcall.service.pipeline.fixed_route import FixedRoute
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step


def passkey_routes(options: PasskeyOptions, services: Services, database: Database) -> Iterator[FixedRoute]:
    """Yield the route of each configured endpoint. database: runs the commands."""
    issued: ChallengeStore = HostChallengeStore(services.host, options.timeout / 1000)
    if options.redis is not None:
        # The Redis client is imported only if it is used.
        from rowcall.service.auth.passkeys.redis_challenge_store import RedisChallengeStore

        issued = RedisChallengeStore(
            HostChallengeStore(services.host, options.timeout / 1000), options.redis, services.options.encryption_name
        )
    parts = (options, services, Transactions(options, services, database), issued)
    relying_party = RelyingParty(options, services.options.forwarding)
    begin, end = OptionsEndpoints(*parts, relying_party), CompletionEndpoints(*parts, relying_party)
    # Origins that may use passkeys may also use the sessions that result from them.
    common_steps = steps_before_sign_in(services, options.rate_limiter, options.origins)
    paths = options.paths
    for path, access, step in (
        (paths.add_options, _ADDING, begin.add),
        (paths.add, _ADDING, end.add),
        (paths.register_options, ANYONE, begin.register),
        (paths.register, ANYONE, end.register),
        (paths.login_options, ANYONE, begin.login),
        (paths.login, ANYONE, end.login),
    ):
        if path is not None:
            admitting = () if access.anonymous else (_only_users(services),)
            yield FixedRoute("POST", path, access, (*common_steps, *admitting, step))


_ADDING = Access(impersonation=Impersonation.REFUSED)


def _only_users(services: Services) -> Step:
    """Return a step that raises `Problem`: 401 for anonymous callers, 403 for users who impersonate and for callers
    with API keys."""
    challenge = services.options.auth.schemes.challenge

    def authorize(context: RequestContext) -> None:
        if context.user is None:
            raise Problem(
                401,
                title="Authentication required to add a passkey",
                code="authentication_required",
                headers=(("www-authenticate", challenge),),
            )
        if context.user.impersonates:
            raise impersonation_refusal()
        refuse_api_key(context.user)

    return authorize
