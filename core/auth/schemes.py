"""Sign-in schemes: the ways in which a session travels. Several may be configured, each with a name (sign-in-9 to
sign-in-13)."""

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
    """Whether the cookie outlives the browser. The lifetime of the session does not depend on it."""
    http_only: bool = True
    same_site: str | None = "lax"
    """Value of the attribute; None: left out."""
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
    """PEM of a private key, used instead of the secret."""
    verification_key: bytes | None = None
    """PEM of a public key; tokens signed with its private key are accepted too."""
    key_set_url: str | None = None
    """URL of a JWKS; tokens signed with its keys are accepted too."""
    key_set_fresh: float = 600.0
    """Seconds after which the JWKS is fetched again."""
    key_set_longest: float = 3600.0
    """Seconds for which its keys stay valid if fetching fails."""
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
    """The configured schemes. In each kind, the main scheme comes first, then the named ones in the order of
    configuration.

    default: the scheme for a login row without `scheme`, unless the request determines one.
    """

    cookies: tuple[CookieScheme, ...] = ()
    bearers: tuple[BearerScheme, ...] = ()
    jwts: tuple[JwtScheme, ...] = ()
    default: str | None = None
    main_jwt: str | None = None
    """Name of the main JWT scheme, which has precedence over the default (sign-in-22)."""
    api_keys: bool = False
    """Whether programs may send API keys, whatever the schemes are."""

    def __bool__(self) -> bool:
        return self.default is not None or self.api_keys

    def all(self) -> Iterator[Scheme]:
        yield from self.cookies
        yield from self.bearers
        yield from self.jwts

    def named(self, name: str) -> Scheme | None:
        """Return the scheme of this name; None: there is none. Names match exactly, those of JWT schemes in any case
        (sign-in-22)."""
        exact = next((scheme for scheme in self.all() if scheme.name == name), None)
        return exact or next((scheme for scheme in self.jwts if scheme.name.lower() == name.lower()), None)

    @property
    def challenge(self) -> str:
        """Value of `WWW-Authenticate` in a 401 (RFC 9110, 11.6.1): `Bearer`, or `Cookie` with the name of the main
        cookie if only cookies are configured."""
        if self.bearers or self.jwts or not self.cookies:
            return "Bearer"
        return f'Cookie cookie-name="{self.cookies[0].cookie}"'
