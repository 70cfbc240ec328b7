"""Read `Auth`: the main and the named schemes of cookies, bearer tokens and JWTs (sign-in-1 to sign-in-13)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rowcall.core.auth.cookies import cookie_name
from rowcall.core.auth.schemes import BearerScheme, CookieScheme, JwtScheme, Scheme, Schemes
from rowcall.core.config import Settings
from rowcall.core.config.tree import find
from rowcall.core.text.interval import parse_interval
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_AUTH = "Auth:"
SHORTEST_SECRET = 32
"""Minimum length of a JWT secret in characters (sign-in-3)."""


def schemes_of(settings: Settings) -> Schemes:
    """Return all enabled schemes. Raises `StartupError` or `ConfigError`."""
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
    _check_main_names(main)
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


def _check_main_names(main: Iterable[Scheme]) -> None:
    """Raise StartupError if two main schemes have one name, which a login row could not distinguish."""
    seen: set[str] = set()
    for scheme in main:
        if scheme.name in seen:
            raise StartupError(f"Auth: two of the main schemes have the name {scheme.name}")
        seen.add(scheme.name)


def _check_unique(schemes: Iterable[Scheme]) -> None:
    schemes_by_value: dict[str, str] = {}
    for scheme in schemes:
        for what, value in _claimed(scheme):
            other = schemes_by_value.setdefault(
                f"{what} {value.lower() if what == 'refresh path' else value}", scheme.name
            )
            if other != scheme.name:
                raise StartupError(f"Auth: the schemes {other} and {scheme.name} share the {what} {value}")


def _claimed(scheme: Scheme) -> Iterable[tuple[str, str]]:
    if isinstance(scheme, CookieScheme):
        yield "cookie name", scheme.cookie
    elif scheme.refresh_path:
        yield "refresh path", scheme.refresh_path


class _Reader:
    """Reads values of a scheme: its own value, else the one of the section `Auth`.

    path: prefix of the keys of a named scheme; None for a main scheme.
    """

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

    def configured_flag(self, key: str) -> bool | None:
        """Return the flag if the configuration contains it, else None; the default is ignored."""
        own = self._settings.flag_or_none(self._path + key) if self._path else None
        is_configured = find(self._settings.root, _AUTH + key) is not None
        return self._settings.flag_or_none(_AUTH + key) if own is None and is_configured else own

    def choice(self, key: str) -> str | None:
        own = self._settings.choice_or_none(self._path + key) if self._path else None
        return own or self._settings.choice_or_none(_AUTH + key)

    def seconds(self, key: str, default: str) -> float:
        own = self._settings.seconds_or_none(self._path + key) if self._path else None
        seconds = self._settings.seconds_or_none(_AUTH + key) if own is None else own
        return (parse_interval(default) or 0.0) if seconds is None else seconds

    def lifetime(self, key: str, default: str) -> float:
        seconds = self.seconds(key, default)
        if seconds < 1:
            raise StartupError(f"{self._path or _AUTH}{key}: the lifetime must be at least one second")
        return seconds


def _cookie(settings: Settings, name: str, path: str | None) -> CookieScheme:
    read = _Reader(settings, path)
    same_site = read.choice("CookieSameSite") or "Lax"
    scheme = CookieScheme(
        name=name,
        # Not inherited: if two schemes shared a cookie, each sign-in would end the other's session (sign-in-11).
        cookie=_cookie_name(read.own_text("CookieName") or f".AspNetCore.{name}"),
        valid=read.lifetime("CookieValid", "14 days"),
        path=_cookie_path(read.text("CookiePath") or "/"),
        domain=_attribute(read.text("CookieDomain") or "", "CookieDomain") or None,
        persistent=read.flag("CookieMultiSessions"),
        http_only=read.flag("CookieHttpOnly"),
        same_site=None if same_site == "Unspecified" else same_site.lower(),
        secure=read.choice("CookieSecure") or "SameAsRequest",
    )
    if scheme.same_site == "none" and scheme.secure != "Always":
        log.warning("%sCookieSameSite is None: browsers drop the cookie unless CookieSecure is Always", path or _AUTH)
    for condition in _wanted_by_prefix(scheme):
        log.warning("%sCookieName is %s: browsers drop the cookie unless %s", path or _AUTH, scheme.cookie, condition)
    return scheme


def _wanted_by_prefix(scheme: CookieScheme) -> Iterable[str]:
    """Yield unmet conditions of browsers for cookies named `__Secure-…` and `__Host-…` (RFC 6265bis, 4.1.3)."""
    name = scheme.cookie.lower()
    if name.startswith(("__secure-", "__host-")) and scheme.secure != "Always":
        yield "CookieSecure is Always"
    if name.startswith("__host-") and scheme.domain:
        yield "CookieDomain is null"
    if name.startswith("__host-") and scheme.path != "/":
        yield "CookiePath is /"


def _cookie_name(text: str) -> str:
    try:
        return cookie_name(text)
    except ValueError as error:
        raise StartupError(f"Auth:CookieName: {error}") from None


def _attribute(text: str, key: str) -> str:
    if not text.isascii() or not text.isprintable() or ";" in text:
        raise StartupError(f"Auth:{key}: {text!r} cannot be part of a cookie")
    return text


def _cookie_path(text: str) -> str:
    """Return `text` if it begins with a slash. Raises StartupError.

    Browsers replace any other path by the folder of the page that signs in (RFC 6265, 5.2.4).
    """
    if not text.startswith("/"):
        raise StartupError(f"Auth:CookiePath: {text!r} is no path such as /")
    return _attribute(text, "CookiePath")


def _refresh_path(read: _Reader, key: str) -> str | None:
    """Return the path of token refresh, or None if there is none. Raises StartupError for an invalid path."""
    text = read.own_text(key)
    if text is not None and (not text.startswith("/") or any(letter in text for letter in "{}?# ")):
        raise StartupError(f"Auth:{key}: {text!r} is no path such as /api/token/refresh")
    return text


def _bearer(settings: Settings, name: str, path: str | None) -> BearerScheme:
    read = _Reader(settings, path)
    return BearerScheme(
        name=name,
        expire=read.lifetime("BearerTokenExpire", "1 hour"),
        refresh_path=_refresh_path(read, "BearerTokenRefreshPath"),
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
        expire=read.lifetime("JwtExpire", "60 minutes"),
        refresh_expire=read.lifetime("JwtRefreshExpire", "7 days"),
        validate_issuer=validate_issuer,
        validate_audience=validate_audience,
        validate_lifetime=read.flag("JwtValidateLifetime"),
        clock_skew=read.seconds("JwtClockSkew", "5 minutes"),
        refresh_path=_refresh_path(read, "JwtRefreshPath"),
    )


_FOREIGN = ("JwtKeySetUrl", "JwtVerificationKeyPath")
"""Keys that make a scheme accept tokens of another issuer."""


def _validates(read: _Reader, flag: str, needed: str, where: str, foreign: str | None) -> bool:
    """Return whether the claim of tokens (issuer or audience) is validated.

    If tokens of another issuer are accepted, validation is on by default, since the keys of an issuer sign the tokens
    of all its applications. Raises StartupError if there is nothing to compare with.

    flag: key of the switch. needed: key of the expected value. foreign: key that makes the scheme accept other tokens.
    """
    requested = read.configured_flag(flag)
    if foreign is not None and requested is False:
        log.warning(
            "%s%s is false: all tokens that the keys of %s%s have signed are accepted, also those for other services",
            *(where, flag, where, foreign),
        )
    if read.text(needed) is not None or not (foreign if requested is None else requested):
        return foreign is not None if requested is None else requested
    if requested:
        raise StartupError(f"{where}{flag} is on, and there is no {where}{needed} to compare with")
    raise StartupError(
        f"{where}{foreign} accepts tokens of another issuer: set {where}{needed} to the value that they must contain, "
        f"or {where}{flag} to false to accept tokens without this check"
    )


def _private_key(path: str, password: str | None, where: str) -> bytes:
    """Return the private key as PEM without a password, since it is sent only to the workers. Raises StartupError."""
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
