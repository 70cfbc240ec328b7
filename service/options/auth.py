"""Settings → the options of authentication. Whatever cannot work stops the start, with the key's name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rowcall.core.auth.claims import IdentityClaims
from rowcall.core.auth.options import (
    ApiKeys,
    AuthOptions,
    BasicOptions,
    ClaimMapping,
    CrossSite,
    DatabaseRoles,
    LoginOptions,
    SessionCheck,
)
from rowcall.core.auth.password_hash import ITERATIONS, MOST_ITERATIONS
from rowcall.core.auth.schemes import BearerScheme, CookieScheme, JwtScheme, Scheme, Schemes
from rowcall.core.config import Settings
from rowcall.core.config.tree import find
from rowcall.core.text.interval import parse_interval
from rowcall.service.options.external import external_options
from rowcall.service.options.server.browsers import as_browsers_write
from rowcall.service.options.server.http import listener_plans
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_AUTH = "Auth:"
_OPTIONS = "Service:AuthenticationOptions:"
_BASIC = _OPTIONS + "BasicAuth:"
SHORTEST_SECRET = 32
"""Characters of a JWT secret (spec 8)."""


def auth_options(settings: Settings) -> AuthOptions:
    """Raises `StartupError` or `ConfigError`."""
    _refuse_removed(settings)
    schemes = _schemes(settings)
    return AuthOptions(
        schemes=schemes,
        identity=IdentityClaims(
            _named(settings, "DefaultUserIdClaimType", "user_id"),
            _named(settings, "DefaultNameClaimType", "user_name"),
            _named(settings, "DefaultRoleClaimType", "user_roles"),
        ),
        login=_login(settings),
        mapping=_mapping(settings),
        basic=_basic(settings),
        impersonation_valid=settings.seconds_or_none(_OPTIONS + "ImpersonationValid"),
        notes_time=settings.flag(_OPTIONS + "NoteSignInTime"),
        single_use=settings.flag(_AUTH + "RefreshTokenSingleUse"),
        roles_match_users=opened(
            settings,
            _OPTIONS + "RolesMatchUsers",
            "a user who chooses the name of a role is let in like one who has it",
        ),
        claims_from_anonymous=opened(
            settings, _OPTIONS + "ClaimsFromAnonymous", "who is not signed in can say to be anybody"
        ),
        cross_site=_cross_site(settings),
        database_roles=_database_roles(settings),
        api_keys=_api_keys(settings),
        session_check=_session_check(settings),
        external=external_options(settings, offered=bool(schemes)),
    )


def _database_roles(settings: Settings) -> DatabaseRoles:
    roles = frozenset(text.strip() for text in settings.texts(_OPTIONS + "DatabaseRoles") or () if text.strip())
    if settings.flag(_OPTIONS + "UseRoleFromClaim") and not roles:
        raise StartupError(f"{_OPTIONS}UseRoleFromClaim needs {_OPTIONS}DatabaseRoles: roles that a claim may name")
    if "none" in map(str.lower, roles):
        raise StartupError(f"{_OPTIONS}DatabaseRoles: none is no role; it would be that of the service")
    return DatabaseRoles(
        _named(settings, "DatabaseRoleClaimType", "database_role"),
        roles,
        settings.text_or_none(_OPTIONS + "AnonymousDatabaseRole") or None,
    )


def _api_keys(settings: Settings) -> ApiKeys | None:
    if not settings.flag(_AUTH + "ApiKey:Enabled"):
        return None
    header = _token(settings.text(_AUTH + "ApiKey:Header"), "ApiKey:Header").lower()
    if header in ("", "authorization", "cookie"):
        raise StartupError(f"{_AUTH}ApiKey:Header: {header!r} cannot hold keys")
    return ApiKeys(header, settings.text(_AUTH + "ApiKey:Command"), settings.seconds(_AUTH + "ApiKey:CacheDuration"))


def _session_check(settings: Settings) -> SessionCheck | None:
    command = settings.text_or_none(_AUTH + "SessionCheckCommand")
    if not command:
        return None
    claim = settings.text_or_none(_AUTH + "SessionClaimType") or "session_id"
    return SessionCheck(claim, command, settings.seconds(_AUTH + "SessionCheckInterval"))


def _cross_site(settings: Settings) -> CrossSite | None:
    if not settings.flag(_AUTH + "RefuseCrossSite"):
        if settings.flag(_AUTH + "CookieAuth"):
            log.warning("%sRefuseCrossSite is false: pages of any site can act for who is signed in by cookie", _AUTH)
        return None
    key = _AUTH + "TrustedOrigins"
    trusted = [text.strip() for text in settings.texts(key) or ()]
    if "null" in map(str.lower, trusted):
        raise StartupError(f"{key}: 'null' is no origin: every page in a sandbox says that it comes from there")
    origins = set(as_browsers_write(trusted, key))
    if settings.flag("Cors:Enabled"):
        # `*` is for calls without a session, and `null` is anybody.
        allowed = [text.strip() for text in settings.texts("Cors:AllowedOrigins") or ()]
        named = [text for text in allowed if text and text.lower() not in ("*", "null")]
        origins.update(as_browsers_write(named, "Cors:AllowedOrigins"))
    return CrossSite(frozenset(origins))


def opened(settings: Settings, key: str, consequence: str) -> bool:
    """A flag that brings back what is closed by default; whoever uses it is told at the start what it opens.

    consequence: what is possible then, as the end of a sentence.
    """
    on = settings.flag(key)
    if on:
        log.warning("%s is on: %s", key, consequence)
    return on


_REMOVED = {
    "CookieValidDays": ("CookieValid", "14 days"),
    "BearerTokenExpireHours": ("BearerTokenExpire", "1 hour"),
    "JwtExpireMinutes": ("JwtExpire", "60 minutes"),
    "JwtRefreshExpireDays": ("JwtRefreshExpire", "7 days"),
}
"""Keys of older services of the field. Passing over one would give sessions another lifetime than was meant."""


def _refuse_removed(settings: Settings) -> None:
    for key, (replacement, example) in _REMOVED.items():
        if find(settings.root, _AUTH + key) is not None:
            raise StartupError(f'{_AUTH}{key} does not exist any more; use {_AUTH}{replacement}, such as "{example}"')


def _named(settings: Settings, key: str, default: str) -> str:
    """Special columns and claim types cannot be switched off (reference 04, 1)."""
    return settings.text_or_none(_OPTIONS + key) or default


def _login(settings: Settings) -> LoginOptions:
    iterations = settings.integer(_OPTIONS + "PasswordHashIterations", minimum=ITERATIONS)
    if iterations > MOST_ITERATIONS:
        raise StartupError(f"{_OPTIONS}PasswordHashIterations: the most allowed is {MOST_ITERATIONS}")
    return LoginOptions(
        status=_named(settings, "StatusColumnName", "status"),
        scheme=_named(settings, "SchemeColumnName", "scheme"),
        body=_named(settings, "BodyColumnName", "body"),
        hash=_named(settings, "HashColumnName", "hash"),
        content_type=_named(settings, "ResponseTypeColumnName", "application/json"),
        password=_named(settings, "PasswordParameterNameContains", "pass"),
        failed_command=settings.text_or_none(_OPTIONS + "PasswordVerificationFailedCommand") or None,
        succeeded_command=settings.text_or_none(_OPTIONS + "PasswordVerificationSucceededCommand") or None,
        tells_wrong_passwords=opened(
            settings, _OPTIONS + "DistinguishWrongPasswords", "whoever tries names learns which of them exist"
        ),
        serialize=settings.flag(_OPTIONS + "SerializeAuthEndpointsResponse"),
        iterations=iterations,
    )


def _mapping(settings: Settings) -> ClaimMapping:
    return ClaimMapping(
        parameters=_pairs(settings, _OPTIONS + "ParameterNameClaimsMapping"),
        json_parameter=settings.text_or_none(_OPTIONS + "ClaimsJsonParameterName") or None,
        address_parameter=settings.text_or_none(_OPTIONS + "IpAddressParameterName") or None,
        context=_pairs(settings, _OPTIONS + "ContextKeyClaimsMapping"),
        json_key=settings.text_or_none(_OPTIONS + "ClaimsJsonContextKey") or None,
        address_key=settings.text_or_none(_OPTIONS + "IpAddressContextKey") or None,
    )


def _pairs(settings: Settings, path: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, claim) for name in settings.names(path) if (claim := settings.map_text(path, name)))


def _basic(settings: Settings) -> BasicOptions:
    options = BasicOptions(
        enabled=settings.flag(_BASIC + "Enabled"),
        realm=settings.text_or_none(_BASIC + "Realm") or None,
        users=dict(_pairs(settings, _BASIC + "Users")),
        hashed=settings.flag(_BASIC + "UseDefaultPasswordHasher"),
        tls=settings.choice(_BASIC + "SslRequirement"),
        command=settings.text_or_none(_BASIC + "ChallengeCommand") or None,
    )
    if options.enabled and options.tls == "Required" and not _is_secure(settings):
        raise StartupError(
            f"{_BASIC}Enabled sends passwords with each request, and this service does not listen on https: "
            f"set Ssl:Enabled and a certificate, or {_BASIC}SslRequirement to Warning or Ignore"
        )
    return options


def _is_secure(settings: Settings) -> bool:
    return settings.flag("Ssl:Enabled") or any(plan.address.secure for plan in listener_plans(settings))


# --- schemes -------------------------------------------------------------------------------------------------------


def _schemes(settings: Settings) -> Schemes:
    names = {
        "cookie": settings.text_or_none(_AUTH + "CookieAuthScheme") or "Cookies",
        "bearer": settings.text_or_none(_AUTH + "BearerTokenAuthScheme") or "BearerToken",
        "jwt": settings.text_or_none(_AUTH + "JwtAuthScheme") or "Bearer",
    }
    main: list[Scheme] = []
    if settings.flag(_AUTH + "CookieAuth"):
        main.append(_cookie(settings, names["cookie"], None))
    if settings.flag(_AUTH + "BearerTokenAuth"):
        main.append(_bearer(settings, names["bearer"], None))
    if settings.flag(_AUTH + "JwtAuth"):
        main.append(_jwt(settings, names["jwt"], None))
    with_keys = settings.flag(_AUTH + "ApiKey:Enabled")
    if not main:
        return Schemes(api_keys=with_keys)
    every = (*main, *_named_schemes(settings, set(names.values())))
    _check_unique(every)
    jwts = tuple(scheme for scheme in every if isinstance(scheme, JwtScheme))
    return Schemes(
        cookies=tuple(scheme for scheme in every if isinstance(scheme, CookieScheme)),
        bearers=tuple(scheme for scheme in every if isinstance(scheme, BearerScheme)),
        jwts=jwts,
        default=main[0].name,
        main_jwt=main[-1].name if isinstance(main[-1], JwtScheme) else None,
        api_keys=with_keys,
    )


def _named_schemes(settings: Settings, taken: set[str]) -> Iterable[Scheme]:
    for name in settings.names(_AUTH + "Schemes"):
        path = f"{_AUTH}Schemes:{name}"
        if not name.strip():
            raise StartupError(f"{_AUTH}Schemes holds a scheme without a name")
        if not settings.flag(path + ":Enabled"):
            continue
        kind = settings.choice_or_none(path + ":Type")
        if name in taken:
            raise StartupError(f"{path}: the name {name} is that of a main scheme")
        if kind is None:
            raise StartupError(f"{path}:Type is missing; it is one of {', '.join(_MAKERS)}")
        yield _MAKERS[kind](settings, name, path + ":")


def _check_unique(schemes: Iterable[Scheme]) -> None:
    seen: dict[str, str] = {}
    for scheme in schemes:
        for what, value in _claimed(scheme):
            other = seen.setdefault(f"{what} {value.lower() if what == 'refresh path' else value}", scheme.name)
            if other != scheme.name:
                raise StartupError(f"Auth: the schemes {other} and {scheme.name} share the {what} {value}")


def _claimed(scheme: Scheme) -> Iterable[tuple[str, str]]:
    if isinstance(scheme, CookieScheme):
        yield "cookie name", scheme.cookie
    elif scheme.refresh_path:
        yield "refresh path", scheme.refresh_path


class _Reader:
    """Values of a scheme: its own, else those of the section Auth."""

    def __init__(self, settings: Settings, path: str | None) -> None:
        self._settings = settings
        self._path = path

    def text(self, key: str) -> str | None:
        own = self._settings.text_or_none(self._path + key) if self._path else None
        return own or self._settings.text_or_none(_AUTH + key) or None

    def own_text(self, key: str) -> str | None:
        return self._settings.text_or_none((self._path or _AUTH) + key) or None

    def flag(self, key: str) -> bool:
        own = self._settings.flag_or_none(self._path + key) if self._path else None
        return self._settings.flag(_AUTH + key) if own is None else own

    def given_flag(self, key: str) -> bool | None:
        """None where nobody has said it, whatever the default is."""
        own = self._settings.flag_or_none(self._path + key) if self._path else None
        said = find(self._settings.root, _AUTH + key) is not None
        return self._settings.flag_or_none(_AUTH + key) if own is None and said else own

    def choice(self, key: str) -> str | None:
        own = self._settings.choice_or_none(self._path + key) if self._path else None
        return own or self._settings.choice_or_none(_AUTH + key)

    def seconds(self, key: str, default: str) -> float:
        own = self._settings.seconds_or_none(self._path + key) if self._path else None
        seconds = self._settings.seconds_or_none(_AUTH + key) if own is None else own
        return (parse_interval(default) or 0.0) if seconds is None else seconds


def _cookie(settings: Settings, name: str, path: str | None) -> CookieScheme:
    read = _Reader(settings, path)
    same_site = read.choice("CookieSameSite") or "Lax"
    scheme = CookieScheme(
        name=name,
        # Not inherited: two schemes in one cookie would end each other's sessions (reference 04, 2.2).
        cookie=_token(read.own_text("CookieName") or f".AspNetCore.{name}", "CookieName"),
        valid=read.seconds("CookieValid", "14 days"),
        path=_attribute(read.text("CookiePath") or "/", "CookiePath"),
        domain=_attribute(read.text("CookieDomain") or "", "CookieDomain") or None,
        persistent=read.flag("CookieMultiSessions"),
        http_only=read.flag("CookieHttpOnly"),
        same_site=None if same_site == "Unspecified" else same_site.lower(),
        secure=read.choice("CookieSecure") or "SameAsRequest",
    )
    if scheme.same_site == "none" and scheme.secure != "Always":
        log.warning("%sCookieSameSite is None: browsers drop the cookie unless CookieSecure is Always", path or _AUTH)
    if scheme.valid < 1:
        raise StartupError(f"{path or _AUTH}CookieValid: a session has to last a second at least")
    return scheme


def _token(text: str, key: str) -> str:
    """RFC 6265: a cookie's name is a token."""
    if not text.isascii() or any(
        character in '()<>@,;:\\"/[]?={} \t' or not character.isprintable() for character in text
    ):
        raise StartupError(f"Auth:{key}: {text!r} cannot be the name of a cookie")
    return text


def _attribute(text: str, key: str) -> str:
    if not text.isascii() or not text.isprintable() or ";" in text:
        raise StartupError(f"Auth:{key}: {text!r} cannot stand in a cookie")
    return text


def _bearer(settings: Settings, name: str, path: str | None) -> BearerScheme:
    read = _Reader(settings, path)
    return BearerScheme(
        name=name,
        expire=read.seconds("BearerTokenExpire", "1 hour"),
        refresh_path=read.own_text("BearerTokenRefreshPath"),
    )


def _jwt(settings: Settings, name: str, path: str | None) -> JwtScheme:
    read = _Reader(settings, path)
    where = path or _AUTH
    secret = read.text("JwtSecret")
    signing = read.text("JwtSigningKeyPath")
    verification = read.text("JwtVerificationKeyPath")
    password = read.text("JwtSigningKeyPassword")
    if secret is None and signing is None:
        raise StartupError(f"{where}JwtSecret or {where}JwtSigningKeyPath is needed to sign tokens")
    if secret is not None and len(secret) < SHORTEST_SECRET:
        raise StartupError(f"{where}JwtSecret is too short: {SHORTEST_SECRET} characters or more are needed")
    foreign = next((key for key in _FOREIGN if read.text(key)), None)
    validate_issuer = _validates(read, "JwtValidateIssuer", "JwtIssuer", where, foreign)
    validate_audience = _validates(read, "JwtValidateAudience", "JwtAudience", where, foreign)
    key_set_url = read.text("JwtKeySetUrl")
    if key_set_url is not None and not key_set_url.lower().startswith(("https://", "http://")):
        raise StartupError(f"{where}JwtKeySetUrl has to begin with https:// or http://")
    return JwtScheme(
        name=name,
        secret=secret,
        signing_key=_private_key(signing, password, where) if signing else None,
        verification_key=_public_key(verification, where) if verification else None,
        key_set_url=key_set_url,
        key_set_fresh=max(1.0, read.seconds("JwtKeySetRefreshInterval", "10 minutes")),
        key_set_longest=read.seconds("JwtKeySetMaxAge", "1 hour"),
        issuer=read.text("JwtIssuer"),
        audience=read.text("JwtAudience"),
        expire=read.seconds("JwtExpire", "60 minutes"),
        refresh_expire=read.seconds("JwtRefreshExpire", "7 days"),
        validate_issuer=validate_issuer,
        validate_audience=validate_audience,
        validate_lifetime=read.flag("JwtValidateLifetime"),
        clock_skew=read.seconds("JwtClockSkew", "5 minutes"),
        refresh_path=read.own_text("JwtRefreshPath"),
    )


_FOREIGN = ("JwtKeySetUrl", "JwtVerificationKeyPath")
"""Keys by which tokens of others are taken."""


def _validates(read: _Reader, flag: str, needed: str, where: str, foreign: str | None) -> bool:
    """Tokens of others say by whom and for whom they are made: an issuer's keys sign for all of its applications."""
    wanted = read.given_flag(flag)
    if foreign is not None and wanted is False:
        log.warning(
            "%s%s is false: whatever the keys of %s%s have signed is taken, also what was meant for others",
            *(where, flag, where, foreign),
        )
    if read.text(needed) is not None or not (foreign if wanted is None else wanted):
        return foreign is not None if wanted is None else wanted
    if wanted:
        raise StartupError(f"{where}{flag} is on, and there is no {where}{needed} to compare with")
    raise StartupError(
        f"{where}{foreign} takes tokens of others: set {where}{needed} to what they have to name, or {where}{flag} to "
        "false to take tokens that were made for anybody"
    )


def _private_key(path: str, password: str | None, where: str) -> bytes:
    """PEM without its password: it only travels to our own workers."""
    from cryptography.hazmat.primitives import serialization

    try:
        key = serialization.load_pem_private_key(
            Path(path).read_bytes(), None if password is None else password.encode()
        )
    except (OSError, ValueError, TypeError) as error:
        raise StartupError(f"{where}JwtSigningKeyPath {path} cannot be read: {error}") from None
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _public_key(path: str, where: str) -> bytes:
    from cryptography.hazmat.primitives import serialization

    try:
        pem = Path(path).read_bytes()
        serialization.load_pem_public_key(pem)
    except (OSError, ValueError) as error:
        raise StartupError(f"{where}JwtVerificationKeyPath {path} cannot be read: {error}") from None
    return pem


_MAKERS: Mapping[str, Callable[[Settings, str, str | None], Scheme]] = {
    "Cookies": _cookie,
    "BearerToken": _bearer,
    "Jwt": _jwt,
}
