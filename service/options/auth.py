"""Read the options of authentication. Settings that cannot work raise an error that names the key and prevents the
start."""

from __future__ import annotations

import logging
from dataclasses import replace
from importlib.util import find_spec

from rowcall.core.auth.argon2_hash import MOST_MEMORY, MOST_ROUNDS, Argon2
from rowcall.core.auth.options import (
    ApiKeys,
    AuthOptions,
    BasicOptions,
    CrossSite,
    DatabaseRoles,
    LoginOptions,
    RefreshTokens,
    SecondFactorOptions,
    SessionCheck,
)
from rowcall.core.auth.password_hash import MOST_ITERATIONS
from rowcall.core.auth.schemes import CookieScheme
from rowcall.core.config import Settings
from rowcall.core.config.sections.application import ApplicationNames
from rowcall.core.config.sections.ssl import Ssl
from rowcall.core.config.tree import find
from rowcall.core.http.cors import Cors
from rowcall.service.options.external import external_options
from rowcall.service.options.server.browsers import serialized_origins
from rowcall.service.options.server.http import listener_plans
from rowcall.service.options.sign_in.schemes import schemes_of
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_AUTH = "Auth:"
_OPTIONS = "Service:AuthenticationOptions:"
_SECOND = _AUTH + "SecondFactor:"
_BASIC = _OPTIONS + "BasicAuth:"


def auth_options(settings: Settings) -> AuthOptions:
    """Return the options of authentication. Raises `StartupError` or `ConfigError`."""
    _refuse_removed(settings)
    schemes = schemes_of(settings)
    login = _login(settings)
    return AuthOptions(
        schemes=schemes,
        login=login,
        basic=_basic(settings),
        refresh_tokens=settings.read(RefreshTokens),
        cross_site=_cross_site(settings),
        database_roles=_database_roles(login),
        api_keys=settings.read_enabled(ApiKeys),
        session_check=_session_check(settings),
        second_factor=_second_factor(settings, offered=schemes.signs_in),
        external=external_options(settings, offered=schemes.signs_in),
    )


def _database_roles(login: LoginOptions) -> DatabaseRoles:
    roles = frozenset(text.strip() for text in login.database_roles if text.strip())
    if login.use_role_from_claim and not roles:
        raise StartupError(f"{_OPTIONS}UseRoleFromClaim needs {_OPTIONS}DatabaseRoles: roles that a claim may name")
    if "none" in map(str.lower, roles):
        raise StartupError(
            f"{_OPTIONS}DatabaseRoles: none is not the name of a role; it would select the role of the service"
        )
    return DatabaseRoles(login.database_role_claim, roles, login.anonymous_role)


def _session_check(settings: Settings) -> SessionCheck | None:
    check = settings.read(SessionCheck)
    return check if check.command else None


def _cross_site(settings: Settings) -> CrossSite | None:
    options = settings.read_enabled(CrossSite)
    if options is None:
        if settings.is_enabled(CookieScheme):
            log.warning(
                "%sRefuseCrossSite is false: pages of any site can send requests as a user who is signed in by cookie",
                _AUTH,
            )
        return None
    key = _AUTH + "TrustedOrigins"
    trusted = [text.strip() for text in options.origins]
    if "null" in map(str.lower, trusted):
        raise StartupError(f"{key}: 'null' is not an origin: every sandboxed page sends it")
    origins = set(serialized_origins(trusted, key))
    cors = settings.read_enabled(Cors)
    if cors is not None:
        # `*` applies to calls without a session only, and any sandboxed page has the origin `null`.
        allowed = [text.strip() for text in cors.allowed]
        origin_texts = [text for text in allowed if text and text.lower() not in ("*", "null")]
        origins.update(serialized_origins(origin_texts, "Cors:AllowedOrigins"))
    return replace(options, origins=frozenset(origins))


def warn_if_on(on: bool, key: str, consequence: str) -> None:
    """Log a warning about a key that disables a protection, if it is on.

    consequence: what becomes possible, as the end of a sentence.
    """
    if on:
        log.warning("%s is on: %s", key, consequence)


_REMOVED = {
    "CookieValidDays": ("CookieValid", "14 days"),
    "BearerTokenExpireHours": ("BearerTokenExpire", "1 hour"),
    "JwtExpireMinutes": ("JwtExpire", "60 minutes"),
    "JwtRefreshExpireDays": ("JwtRefreshExpire", "7 days"),
}
"""Keys of NpgsqlRest that this service has replaced, with the replacement and an example. They are errors: if they were
ignored, sessions would have another lifetime than intended.
"""


def _refuse_removed(settings: Settings) -> None:
    for key, (replacement, example) in _REMOVED.items():
        if find(settings.root, _AUTH + key) is not None:
            raise StartupError(f'{_AUTH}{key} does not exist any more; use {_AUTH}{replacement}, such as "{example}"')


def _login(settings: Settings) -> LoginOptions:
    options = settings.read(
        LoginOptions, second_factor="second_factor" if settings.is_enabled(SecondFactorOptions) else None
    )
    warn_if_on(
        options.distinguishes_wrong_passwords,
        _OPTIONS + "DistinguishWrongPasswords",
        "an attacker can find out which user names exist",
    )
    warn_if_on(
        options.roles_match_users,
        _OPTIONS + "RolesMatchUsers",
        "a user who chooses the name of a role as user name is admitted like users with the role",
    )
    warn_if_on(
        options.claims_from_anonymous,
        _OPTIONS + "ClaimsFromAnonymous",
        "anonymous callers can pretend to be any user",
    )
    if options.iterations > MOST_ITERATIONS:
        raise StartupError(f"{_OPTIONS}PasswordHashIterations: the most allowed is {MOST_ITERATIONS}")
    columns = [options.status, options.scheme, options.body, options.hash]
    for column in columns:
        if [other.lower() for other in columns].count(column.lower()) > 1:
            raise StartupError(f"{_OPTIONS}*ColumnName: {column} cannot mean two things in a login row")
    return replace(options, argon2=_argon2(options))


def _second_factor(settings: Settings, *, offered: bool) -> SecondFactorOptions | None:
    """Return the options of the second factor; None: it is off.

    offered: there is a scheme to sign in with. Raises `StartupError` if there is none and the second factor is on.
    """
    if not settings.is_enabled(SecondFactorOptions):
        return None
    if not offered:
        raise StartupError(
            f"{_SECOND}Enabled needs a scheme to sign in with: Auth:CookieAuth, Auth:BearerTokenAuth or Auth:JwtAuth"
        )
    options = settings.read(SecondFactorOptions)
    return options if options.issuer else replace(options, issuer=settings.read(ApplicationNames).application or "")


def _argon2(login: LoginOptions) -> Argon2 | None:
    """Return the work factor of Argon2id; None: passwords are hashed by PBKDF2. Raises `StartupError` if argon2-cffi is
    not installed or a factor is too large.
    """
    if login.hash_algorithm != "Argon2id":
        return None
    if find_spec("argon2") is None:
        raise StartupError(f"{_OPTIONS}PasswordHashAlgorithm Argon2id needs argon2-cffi: pip install 'rowcall[argon2]'")
    if login.argon2_memory > MOST_MEMORY or login.argon2_iterations > MOST_ROUNDS:
        raise StartupError(f"{_OPTIONS}Argon2Memory is at most {MOST_MEMORY}, and Argon2Iterations {MOST_ROUNDS}")
    return Argon2(login.argon2_memory, login.argon2_iterations)


def _basic(settings: Settings) -> BasicOptions:
    options = settings.read(BasicOptions)
    if options.enabled and options.tls == "Required" and not is_secure(settings):
        raise StartupError(
            f"{_BASIC}Enabled sends passwords with each request, and this service does not listen on https: "
            f"set Ssl:Enabled and a certificate, or {_BASIC}SslRequirement to Warning or Ignore"
        )
    return options


def is_secure(settings: Settings) -> bool:
    """Return whether the service itself listens on https. Raises `StartupError` for an invalid listener."""
    return settings.is_enabled(Ssl) or any(plan.address.secure for plan in listener_plans(settings))
