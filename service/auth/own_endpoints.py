"""Steps ahead of the sign-in endpoints that belong to the service, such as those of passkeys."""

from __future__ import annotations

from dataclasses import replace

from rowcall.core.auth.options import CrossSite
from rowcall.service.auth.cross_site import foreign_refusal
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import Step


def ahead_of_sign_in(
    services: Services, rate_limiter: str | None, origins: frozenset[str] = frozenset()
) -> tuple[Step, ...]:
    """Return the steps that authenticate, limit the rate, and refuse sessions on pages of other sites.

    rate_limiter: name of a policy. origins: whose pages may use sessions, beside those of the configuration.
    """
    auth = services.options.auth
    steps: list[Step] = []
    if auth.schemes:
        steps.append(services.auth.sessions.authenticate)
    limited = services.limiting(rate_limiter) if services.limiting is not None else None
    if limited is not None:
        steps.append(limited)
    if auth.cross_site is not None and auth.schemes.cookies:
        trusted = CrossSite(auth.cross_site.origins | origins)
        check = foreign_refusal(replace(auth, cross_site=trusted), services.options.forwarding)
        steps.append(lambda context: check(context.scope))
    return tuple(steps)
