"""`role_from_claim`: run a routine as the PostgreSQL role that a claim names, with its privileges and policies.

The role is set for the transaction of the call only (`SET LOCAL ROLE`), like other settings. Only roles that the
configuration lists are set. A user without such a role is refused; the routine never runs as the service instead.

PostgreSQL checks the use of schemas when it prepares a statement, and inlines functions into its plan, which another
role may not execute. Roles therefore never share a prepared statement: the steps are compiled for each role.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from rowcall.core.auth.claims import User
from rowcall.core.auth.options import DatabaseRoles
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.service.auth.access import anonymous_refusal
from rowcall.service.database.preamble import Preamble
from rowcall.service.request_context.request_context import RequestContext, Step

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


def refuse_without_role(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that refuses callers without a role (`Problem` 401 for anonymous callers, else 403). It follows
    `authorize`. None: the endpoint needs no role.

    A login needs none: for callers without a role it runs as the service.
    """
    if not endpoint.access.database_role:
        return None
    options = services.options.auth
    roles = options.database_roles

    def refuse(context: RequestContext) -> None:
        if role_of(context.user, roles) is not None:
            return
        if context.user is None:
            raise anonymous_refusal(options, context, f"{endpoint.name} is for signed-in users with a database role")
        raise Problem(403, f"{endpoint.name} is for users with a database role in the claim {roles.claim}")

    return refuse


class RoleSteps:
    """Continues a request with the steps of its role. steps: returns the further steps of an endpoint."""

    def __init__(
        self, endpoint: Endpoint, services: Services, steps: Callable[[Endpoint, Services], tuple[Step, ...]]
    ) -> None:
        self._roles = services.options.auth.database_roles
        self._endpoint = endpoint
        self._services = services
        self._compile = steps
        self._compiled: dict[str | None, tuple[Step, ...]] = {}
        """By role; None: a login runs as the service."""

    def choose(self, context: RequestContext) -> None:
        """Continue with the steps of the role of the request; without a role, with steps that run as the service.

        It does not refuse callers: `refuse_without_role` precedes it, so that only logins come here without a role.
        """
        role = role_of(context.user, self._roles)
        steps = self._compiled.get(role)
        if steps is None:
            options = replace(self._endpoint.options, database_role=role)
            steps = self._compiled[role] = self._compile(replace(self._endpoint, options=options), self._services)
        context.follow(steps)


def database_role(endpoint: Endpoint, services: Services) -> Preamble | None:
    """Return the preamble that sets the role, or None if the endpoint does not use `role_from_claim`."""
    if not endpoint.options.role_from_claim:
        return None
    roles = services.options.auth.database_roles

    def settings(context: RequestContext) -> list[bytes | None]:
        role = role_of(context.user, roles)
        return [] if role is None else [b"role", role.encode()]

    return Preamble(settings=(settings,))


def role_of(user: User | None, roles: DatabaseRoles) -> str | None:
    """Return the first role of the user's claims that the configuration allows, or None; for an anonymous caller the
    role that is configured for them, or None.
    """
    if user is None:
        return roles.anonymous
    claimed_roles = (value for kind, value in user.claims if kind == roles.claim)
    return next((value for value in claimed_roles if value in roles.allowed), None)
