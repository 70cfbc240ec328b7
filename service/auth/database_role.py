"""`role_from_claim`: a routine runs as the role of PostgreSQL that a claim names, for its privileges and policies.

The role is set as settings are, for the transaction of the call alone (`SET LOCAL ROLE`). Only roles that the
configuration lists are set, and nobody runs as the service for want of one: who has none is refused.
"""

from __future__ import annotations

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
    """Stands behind `authorize`. A login is open, and runs as the service where strangers have no role."""
    if not endpoint.options.role_from_claim or endpoint.options.login:
        return None
    options = services.options.auth
    roles = options.database_roles

    def refuse(context: RequestContext) -> None:
        if role_of(context.user, roles) is not None:
            return
        if context.user is None:
            raise anonymous_refusal(options, context, f"{endpoint.name} is for signed-in users with a database role")
        raise Problem(403, f"{endpoint.name} is for users with a role of the database, by the claim {roles.claim}")

    return refuse


def database_role(endpoint: Endpoint, services: Services) -> Preamble | None:
    if not endpoint.options.role_from_claim:
        return None
    roles = services.options.auth.database_roles

    def settings(context: RequestContext) -> list[bytes | None]:
        role = role_of(context.user, roles)
        return [] if role is None else [b"role", role.encode()]

    return Preamble(settings=(settings,))


def role_of(user: User | None, roles: DatabaseRoles) -> str | None:
    if user is None:
        return roles.anonymous
    named = (value for kind, value in user.claims if kind == roles.claim)
    return next((value for value in named if value in roles.allowed), None)
