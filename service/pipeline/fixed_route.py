"""Routes that belong to the service and have no routine, such as those of health checks and statistics."""

from __future__ import annotations

from typing import NamedTuple

from rowcall.core.endpoint.access import Access
from rowcall.core.errors.problems import Problem, unauthorized_problem
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step


class FixedRoute(NamedTuple):
    """A route without a routine."""

    method: str
    path: str
    access: Access
    """`steps` enforce it; documents and the audit report it."""
    steps: tuple[Step, ...]


def with_limit(services: Services, rate_limiter: str | None, first_steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the first steps of a path with the step that takes a permit: before them, so that a refused request costs
    nothing else, or behind them if the policy depends on the user (limits-7).

    rate_limiter: name of the policy; None: the rate is not limited. first_steps: those that authenticate, if a scheme
    is configured, and further checks.
    """
    limited = services.limiting(rate_limiter) if services.limiting is not None else None
    if limited is None:
        return first_steps
    policy = services.options.limits.policy(rate_limiter)
    behind = policy is not None and policy.depends_on_user
    return (*first_steps, limited) if behind else (limited, *first_steps)


def admission(what: str, access: Access, challenge: str) -> tuple[Step, ...]:
    """Return the step that refuses callers who have no access, or none if all have. It follows the authentication.

    what: name in refusals, such as `/stats/tables is`. challenge: header WWW-Authenticate of a 401. The step raises
    `Problem` 401 or 403.
    """
    if access.anonymous:
        return ()
    roles = frozenset(access.roles)

    def admit(context: RequestContext) -> None:
        if context.user is None:
            raise unauthorized_problem(challenge, f"{what} for signed-in users")
        if roles and roles.isdisjoint(context.user.roles):
            raise Problem(403, f"{what} for users with one of the roles {', '.join(sorted(roles))}")

    return (admit,)
