"""Who may call an endpoint, from its options and the configuration: the only place that decides it."""

from __future__ import annotations

from functools import lru_cache

from rowcall.core.auth.required_roles import is_user
from rowcall.core.endpoint.access import Access
from rowcall.core.endpoint.capabilities import BasicAuth, Impersonation
from rowcall.core.endpoint.endpoint import Options


def access_of(options: Options, *, basic_everywhere: bool, anonymous_database_role: bool) -> Access:
    """Return the access of an endpoint.

    A login is open to all callers, whatever its comment says, unless it begins or ends an impersonation (sign-in-14).
    HTTP Basic is required of logins, too (access-11).

    basic_everywhere: the configuration requires HTTP Basic. anonymous_database_role: anonymous callers have a role of
    PostgreSQL; otherwise an endpoint with `role_from_claim` refuses them.
    """
    own = options.basic_auth
    basic = own is not None and own.enabled
    return _access(
        options.open_login,
        options.requires_authorization or options.login,
        options.roles,
        options.fresh,
        options.second_factor is True and not options.login,
        options.impersonation,
        (own or BasicAuth()) if basic or basic_everywhere else None,
        options.role_from_claim and not options.login,
        anonymous_database_role,
        None if options.webhook is None else options.webhook.scheme.value,
        None if options.download is None else options.download.link_seconds,
    )


@lru_cache(maxsize=256)
def _access(
    open_login: bool,
    signed_in: bool,
    values: tuple[str, ...],
    freshness: float | None,
    second_factor: bool,
    impersonation: Impersonation | None,
    basic: BasicAuth | None,
    database_role: bool,
    anonymous_database_role: bool,
    signature: str | None,
    links: float | None,
) -> Access:
    """Return one shared object for equal arguments, because most endpoints have equal access.

    open_login: as `Options.open_login`; conditions on the user do not apply then. signed_in: callers have to be signed
    in. values: of `authorize`. freshness: in seconds. Other arguments as the fields of `Access`, or as in `access_of`.
    """
    restricted = not open_login and (signed_in or bool(values) or freshness is not None or second_factor)
    anonymous = not restricted and basic is None and (anonymous_database_role or not database_role)
    values = () if open_login else values
    return Access(
        anonymous=anonymous,
        roles=tuple(value for value in values if not is_user(value)),
        users=tuple(value for value in values if is_user(value)),
        freshness=None if open_login else freshness,
        second_factor=second_factor and not open_login,
        impersonation=impersonation,
        basic=basic,
        database_role=database_role,
        signature=signature,
        links=links,
    )
