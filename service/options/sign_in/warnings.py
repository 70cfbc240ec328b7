"""Configuration warnings about sign-in: settings that do not do what they seem to, each with its key."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rowcall.core.auth.argon2_hash import work_of
from rowcall.core.auth.options import AuthOptions, BasicOptions
from rowcall.core.auth.password_hash import iterations_of
from rowcall.core.config import Settings
from rowcall.core.config.sections.auth import NamedJwt, NamedScheme
from rowcall.core.config.tree import find
from rowcall.core.operations.options import HealthOptions, StatisticsKeys
from rowcall.core.operations.static_files import StaticFileOptions

_OPTIONS = "Service:AuthenticationOptions:"
_BASIC = _OPTIONS + "BasicAuth:"
MAIN_SCHEMES = "Auth:CookieAuth, Auth:BearerTokenAuth or Auth:JwtAuth"

_VARIABLE = re.compile(r"[^\W\d][\w$]*(\.[^\W\d][\w$]*)+")
"""Names that PostgreSQL accepts for custom settings: identifiers with a dot."""


def configuration_warnings(settings: Settings, auth: AuthOptions, static: StaticFileOptions | None) -> Iterator[str]:
    """Yield a message for each setting of sign-in that does not do what it seems to. static: None if no files are
    served.
    """
    for name in settings.names_of(NamedScheme):
        if auth.schemes.default is None and settings.is_enabled(NamedScheme, name):
            yield f"Auth:Schemes:{name} is not offered: named schemes require {MAIN_SCHEMES}"
    yield from _endless_tokens(settings, auth)
    yield from _basic_warnings(auth.basic)
    yield from _variable_warnings(auth)
    yield from _mapping_warnings(settings, auth)
    if not auth.schemes:
        for key in _keys_requiring_sign_in(settings, static):
            yield f"{key}: no user has access, since no authentication scheme is enabled ({MAIN_SCHEMES})"


def _endless_tokens(settings: Settings, auth: AuthOptions) -> Iterator[str]:
    for scheme in auth.schemes.jwts:
        if not scheme.validate_lifetime:
            named = scheme.name in settings.names_of(NamedScheme)
            own = named and settings.read(NamedJwt, scheme.name).validate_lifetime is not None
            key = f"Auth:{f'Schemes:{scheme.name}:' if own else ''}JwtValidateLifetime"
            yield f"{key} is false: tokens of the scheme {scheme.name} are accepted long after they have expired"


def _basic_warnings(basic: BasicOptions) -> Iterator[str]:
    if basic.enabled and basic.tls == "Warning":
        yield f"{_BASIC}Enabled is true and {_BASIC}SslRequirement Warning: passwords may come without TLS"
    if basic.enabled and not basic.users and basic.command is None:
        yield (
            f"{_BASIC}Enabled is true, and neither {_BASIC}Users nor {_BASIC}ChallengeCommand is set: only "
            "endpoints with users of their own admit callers"
        )
    for name, stored in basic.users.items() if basic.hashed else ():
        if iterations_of(stored) is None and work_of(stored) is None:
            yield (
                f"{_BASIC}Users:{name} is no hash as `rowcall --hash` prints it, so that no password matches; "
                f"{_BASIC}UseDefaultPasswordHasher=false accepts plain passwords"
            )


def _variable_warnings(auth: AuthOptions) -> Iterator[str]:
    mapping = auth.login
    variables = [(f"{_OPTIONS}ContextKeyClaimsMapping", name) for name, _ in mapping.context]
    variables += [(f"{_OPTIONS}ClaimsJsonContextKey", mapping.json_key or "")]
    variables += [(f"{_OPTIONS}IpAddressContextKey", mapping.address_key or "")]
    for key, name in variables:
        if name and _VARIABLE.fullmatch(name) is None:
            yield (
                f"{key}: {name} is no name such as request.user_id: unless it is a setting of PostgreSQL itself, "
                "every request with claims fails"
            )


def _mapping_warnings(settings: Settings, auth: AuthOptions) -> Iterator[str]:
    """Yield warnings about claim types that are renamed while the default mappings still use their default names.

    The mappings name claims independently of the claim types of the identity (sign-in-7).
    """
    identity = (auth.identity.user_id, auth.identity.user_name, auth.identity.roles)
    renamed = [*zip(_IDENTITY, ("user_id", "user_name", "user_roles"), identity, strict=True)]
    maps = (("ParameterNameClaimsMapping", auth.login.parameters), ("ContextKeyClaimsMapping", auth.login.context))
    for name, pairs in maps:
        if find(settings.root, _OPTIONS + name) is not None:
            continue
        for key, default, chosen in renamed:
            target = next((target for target, claim in pairs if claim == default), None)
            if chosen != default and target is not None:
                yield f"{_OPTIONS}{key} is {chosen}, and {target} is still filled from {default}: see {_OPTIONS}{name}"


_IDENTITY = ("DefaultUserIdClaimType", "DefaultNameClaimType", "DefaultRoleClaimType")


def _keys_requiring_sign_in(settings: Settings, static: StaticFileOptions | None) -> Iterator[str]:
    """Yield the keys that require a sign-in for something other than endpoints. static: None: no files are served."""
    health, statistics = settings.read_enabled(HealthOptions), settings.read_enabled(StatisticsKeys)
    if health is not None and health.closed:
        yield "HealthChecks:RequireAuthorization"
    if statistics is not None and statistics.closed:
        yield "Stats:RequireAuthorization"
    elif statistics is not None and statistics.roles:
        yield "Stats:AuthorizedRoles"
    if static is not None and static.closed:
        yield "StaticFiles:AuthorizePaths"
