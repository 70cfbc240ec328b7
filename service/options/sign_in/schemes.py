"""Read `Auth`: the main and the named schemes of cookies, bearer tokens and JWTs (sign-in-1 to sign-in-13)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rowcall.core.auth.cookies import cookie_name
from rowcall.core.auth.options import ApiKeys
from rowcall.core.auth.schemes import (
    BearerScheme,
    CookieScheme,
    JwtFiles,
    JwtScheme,
    Scheme,
    Schemes,
    same_site_attribute,
)
from rowcall.core.config import Settings
from rowcall.core.config.sections.auth import NamedBearer, NamedCookie, NamedJwt, NamedJwtFiles, NamedScheme
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_AUTH = "Auth:"
SHORTEST_SECRET = 32
"""Minimum length of a JWT secret in characters (sign-in-3)."""


def schemes_of(settings: Settings) -> Schemes:
    """Return all enabled schemes; without an enabled main scheme, there are no named ones either. Raises `StartupError`
    or `ConfigError`."""
    main: list[Scheme] = [make(settings) for kind, make in _MAKERS.values() if settings.is_enabled(kind)]
    with_keys = settings.is_enabled(ApiKeys)
    if not main:
        return Schemes(api_keys=with_keys)
    _check_main_names(main)
    every = (*main, *_named_schemes(settings))
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


def _named_schemes(settings: Settings) -> Iterable[Scheme]:
    main = settings.read(CookieScheme), settings.read(BearerScheme), settings.read(JwtScheme, secret=None)
    taken = {scheme.name for scheme in main}
    for name in settings.names_of(NamedScheme):
        path = f"{_AUTH}Schemes:{name}"
        if not name.strip():
            raise StartupError(f"{_AUTH}Schemes holds a scheme without a name")
        keys = settings.read_enabled(NamedScheme, name)
        if keys is None:
            continue
        if name in taken:
            raise StartupError(f"{path}: the name {name} is that of a main scheme")
        if keys.type is None:
            raise StartupError(f"{path}:Type is missing; it is one of {', '.join(_MAKERS)}")
        yield _MAKERS[keys.type][1](settings, name)


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
        for what, value in _unique_names(scheme):
            other = schemes_by_value.setdefault(
                f"{what} {value.lower() if what == 'refresh path' else value}", scheme.name
            )
            if other != scheme.name:
                raise StartupError(f"Auth: the schemes {other} and {scheme.name} share the {what} {value}")


def _unique_names(scheme: Scheme) -> Iterable[tuple[str, str]]:
    if isinstance(scheme, CookieScheme):
        yield "cookie name", scheme.cookie
    elif scheme.refresh_path:
        yield "refresh path", scheme.refresh_path


def _path(name: str | None) -> str:
    """Return the prefix of the keys of a scheme. name: None for a main scheme."""
    return _AUTH if name is None else f"{_AUTH}Schemes:{name}:"


def _values_of_scheme(settings: Settings, kind: type[Any], name: str | None, *not_inherited: str) -> dict[str, Any]:
    """Return the values that a named scheme sets itself, by field; for its other fields, the values of the section
    `Auth` apply. Empty for a main scheme (`name` None).

    kind: class of the keys of a named scheme. not_inherited: fields for which the values of `Auth` never apply; they
    are returned even if they are None.
    """
    if name is None:
        return {}
    keys = settings.read(kind, name)
    values = {field.name: getattr(keys, field.name) for field in fields(keys)}
    own = {field: value for field, value in values.items() if value is not None or field in not_inherited}
    return own if kind is NamedJwtFiles else {"name": name, **own}


def _check_lifetime(name: str | None, key: str, seconds: float) -> None:
    if seconds < 1:
        raise StartupError(f"{_path(name)}{key}: the lifetime must be at least one second")


def _cookie(settings: Settings, name: str | None = None) -> CookieScheme:
    # If two schemes shared a cookie, each sign-in would end the other's session (sign-in-11).
    own = _values_of_scheme(settings, NamedCookie, name, "cookie")
    if name is not None:
        own["cookie"] = own["cookie"] or ""
    if "same_site" in own:
        own["same_site"] = same_site_attribute(own["same_site"])
    scheme = settings.read(CookieScheme, **own)
    _cookie_name(scheme.cookie)
    _check_lifetime(name, "CookieValid", scheme.valid)
    _check_cookie_path(scheme.path)
    _check_attribute(scheme.domain or "", "CookieDomain")
    if scheme.same_site == "none" and scheme.secure != "Always":
        log.warning("%sCookieSameSite is None: browsers drop the cookie unless CookieSecure is Always", _path(name))
    for condition in _prefix_conditions(scheme):
        log.warning("%sCookieName is %s: browsers drop the cookie unless %s", _path(name), scheme.cookie, condition)
    return scheme


def _prefix_conditions(scheme: CookieScheme) -> Iterable[str]:
    """Yield unmet conditions of browsers for cookies named `__Secure-…` and `__Host-…` (RFC 6265bis, 4.1.3), as ends of
    a sentence.
    """
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


def _check_attribute(text: str, key: str) -> None:
    if not text.isascii() or not text.isprintable() or ";" in text:
        raise StartupError(f"Auth:{key}: {text!r} cannot be part of a cookie")


def _check_cookie_path(text: str) -> None:
    """Raise StartupError for a path that does not begin with a slash, which browsers replace by the folder of the page
    that signs in (RFC 6265, 5.2.4), and for one with characters that cannot be part of a cookie."""
    if not text.startswith("/"):
        raise StartupError(f"Auth:CookiePath: {text!r} is no path such as /")
    _check_attribute(text, "CookiePath")


def _check_refresh_path(text: str | None, key: str) -> None:
    if text is not None and (not text.startswith("/") or any(letter in text for letter in "{}?# ")):
        raise StartupError(f"Auth:{key}: {text!r} is no path such as /api/token/refresh")


def _bearer(settings: Settings, name: str | None = None) -> BearerScheme:
    own = _values_of_scheme(settings, NamedBearer, name, "refresh_path")
    scheme = settings.read(BearerScheme, **own)
    _check_lifetime(name, "BearerTokenExpire", scheme.expire)
    _check_refresh_path(scheme.refresh_path, "BearerTokenRefreshPath")
    return scheme


def _jwt(settings: Settings, name: str | None = None) -> JwtScheme:
    own = _values_of_scheme(settings, NamedJwt, name, "refresh_path")
    scheme = settings.read(JwtScheme, **own)
    files = settings.read(JwtFiles, **_values_of_scheme(settings, NamedJwtFiles, name))
    where = _path(name)
    if scheme.secret is None and files.signing is None:
        raise StartupError(f"{where}JwtSecret or {where}JwtSigningKeyPath is needed to sign tokens")
    if scheme.secret is not None and len(scheme.secret) < SHORTEST_SECRET:
        raise StartupError(f"{where}JwtSecret is too short: {SHORTEST_SECRET} characters or more are needed")
    foreign = "JwtVerificationKeyPath" if files.verification else None
    foreign = "JwtKeySetUrl" if scheme.key_set_url else foreign
    issuer = _validates(scheme.validate_issuer, scheme.issuer, "Issuer", where, foreign)
    audience = _validates(scheme.validate_audience, scheme.audience, "Audience", where, foreign)
    if scheme.key_set_url is not None and not scheme.key_set_url.lower().startswith(("https://", "http://")):
        raise StartupError(f"{where}JwtKeySetUrl has to begin with https:// or http://")
    _check_lifetime(name, "JwtExpire", scheme.expire)
    _check_lifetime(name, "JwtRefreshExpire", scheme.refresh_expire)
    _check_refresh_path(scheme.refresh_path, "JwtRefreshPath")
    return replace(
        scheme,
        key_set_fresh=max(1.0, scheme.key_set_fresh),
        signing_key=_private_key(files.signing, files.password, where) if files.signing else None,
        verification_key=_public_key(files.verification, where) if files.verification else None,
        validate_issuer=issuer,
        validate_audience=audience,
    )


def _validates(requested: bool | None, expected: str | None, claim: str, where: str, foreign: str | None) -> bool:
    """Return whether a claim of tokens, issuer or audience, is compared with the configured value. By default, this is
    so if tokens of another issuer are accepted, since the keys of an issuer sign the tokens of all its applications.

    Logs a warning if tokens of another issuer are accepted, and the comparison is switched off. Raises `StartupError`
    if there is no value to compare with.

    requested: None if the configuration does not say. expected: the value to compare with, if one is configured. claim:
    Issuer or Audience. where: prefix of the keys of the scheme, for messages. foreign: key that makes the scheme accept
    tokens of another issuer; None: it accepts none.
    """
    flag, needed = f"JwtValidate{claim}", f"Jwt{claim}"
    if foreign is not None and requested is False:
        log.warning(
            "%s%s is false: all tokens that the keys of %s%s have signed are accepted, also those for other services",
            *(where, flag, where, foreign),
        )
    validates = foreign is not None if requested is None else requested
    if expected is not None or not validates:
        return validates
    if requested:
        raise StartupError(f"{where}{flag} is on, and there is no {where}{needed} to compare with")
    raise StartupError(
        f"{where}{foreign} accepts tokens of another issuer: set {where}{needed} to the value that they must contain, "
        f"or {where}{flag} to false to accept tokens without this check"
    )


def _private_key(path: str, password: str | None, where: str) -> bytes:
    """Return the private key as PEM without a password, since it is sent only to the workers. Raises StartupError if it
    cannot be read.

    password: of the file; None: it is not encrypted. where: prefix of the keys of the scheme, for messages.
    """
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


_MAKERS: Mapping[str, tuple[type[Any], Callable[..., Scheme]]] = {
    "Cookies": (CookieScheme, _cookie),
    "BearerToken": (BearerScheme, _bearer),
    "Jwt": (JwtScheme, _jwt),
}
