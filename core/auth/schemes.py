"""The ways in which a session travels, as configured: several at once, each with a name (sign-in-9 to sign-in-13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CookieScheme:
    """An encrypted cookie. Times in seconds."""

    name: str = "Cookies"
    cookie: str = ".AspNetCore.Cookies"
    valid: float = 14 * 86_400.0
    path: str = "/"
    domain: str | None = None
    persistent: bool = True
    """Outlives the browser; how long the session is valid does not depend on it."""
    http_only: bool = True
    same_site: str | None = "lax"
    """As written in the attribute; None: left out."""
    secure: str = "SameAsRequest"
    """`SameAsRequest`, `Always` or `None`."""


@dataclass(frozen=True, slots=True)
class BearerScheme:
    """An encrypted token in the Authorization header."""

    name: str = "BearerToken"
    expire: float = 3600.0
    refresh_path: str | None = None


@dataclass(frozen=True, slots=True)
class JwtScheme:
    """A signed token that other services can verify."""

    name: str = "Bearer"
    secret: str | None = field(default=None, repr=False)
    signing_key: bytes | None = field(default=None, repr=False)
    """PEM of a private key; signs in place of the secret."""
    verification_key: bytes | None = None
    """PEM of a public key whose tokens are taken too."""
    key_set_url: str | None = None
    """Address of a JWKS whose keys' tokens are taken too."""
    key_set_fresh: float = 600.0
    """Seconds after which it is fetched again."""
    key_set_longest: float = 3600.0
    """Seconds for which its keys are believed when that fails."""
    issuer: str | None = None
    audience: str | None = None
    expire: float = 3600.0
    refresh_expire: float = 7 * 86_400.0
    validate_issuer: bool = False
    validate_audience: bool = False
    validate_lifetime: bool = True
    clock_skew: float = 300.0
    refresh_path: str | None = None


Scheme = CookieScheme | BearerScheme | JwtScheme


@dataclass(frozen=True, slots=True)
class Schemes:
    """Those that are on. Of each kind the main one comes first, then the named ones in the order of configuration.

    default: the one that a login row without `scheme` signs in with, when the request says nothing else.
    """

    cookies: tuple[CookieScheme, ...] = ()
    bearers: tuple[BearerScheme, ...] = ()
    jwts: tuple[JwtScheme, ...] = ()
    default: str | None = None
    main_jwt: str | None = None
    """Name of the main JWT scheme, which wins over the default (sign-in-22)."""
    api_keys: bool = False
    """Programs may send keys, whatever the schemes are."""

    def __bool__(self) -> bool:
        return self.default is not None or self.api_keys

    def all(self) -> Iterator[Scheme]:
        yield from self.cookies
        yield from self.bearers
        yield from self.jwts

    def named(self, name: str) -> Scheme | None:
        """Names compare exactly, those of JWT schemes in any case (sign-in-22)."""
        exact = next((scheme for scheme in self.all() if scheme.name == name), None)
        return exact or next((scheme for scheme in self.jwts if scheme.name.lower() == name.lower()), None)

    @property
    def challenge(self) -> str:
        """What a 401 asks for (RFC 9110, 11.6.1)."""
        if self.bearers or self.jwts or not self.cookies:
            return "Bearer"
        return f'Cookie cookie-name="{self.cookies[0].cookie}"'
