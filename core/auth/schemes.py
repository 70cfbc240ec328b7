"""Sign-in schemes: the ways in which a session travels. Several may be configured, each with a name (sign-in-9 to
sign-in-13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rowcall.core.sections.declaration import choice, flag, if_set, interval, lenient, part, section, text
from rowcall.core.sections.values import or_empty
from rowcall.core.text.interval import parse_interval


def _or(default: str) -> Callable[[str | None], str]:
    """Return a conversion that replaces None and an empty text by the default."""
    return lambda text: text or default


def _interval(name: str, default: str, meaning: str) -> Any:
    """Declare a duration for which null means its default."""
    seconds = parse_interval(default)
    return interval(name, default, meaning, nullable=True, convert=lambda value: seconds if value is None else value)


def _lenient_interval(name: str, default: str, meaning: str) -> Any:
    """Declare a duration for which null and a text that is no duration mean its default."""
    seconds = parse_interval(default)

    def convert(text: str) -> float | None:
        value = parse_interval(text)
        return seconds if value is None else value

    return lenient(interval(name, default, meaning, nullable=True), convert=convert)


def same_site_attribute(word: str | None) -> str | None:
    """Return the value of the attribute `SameSite` for a word of the configuration (None: Lax); None if the cookie has
    no such attribute."""
    return None if word == "Unspecified" else (word or "Lax").lower()


@section("Auth", switch="CookieAuth")
class CookieScheme:
    """An encrypted cookie. Times in seconds."""

    cookie_auth = flag("CookieAuth", False, "Offer sessions in a cookie.")
    name: str = text(
        "CookieAuthScheme", None, "Name by which a login selects cookies. null: `Cookies`.", convert=_or("Cookies")
    )
    valid: float = _interval("CookieValid", "14 days", "Lifetime of a session. null: 14 days.")
    cookie: str = text(
        "CookieName", None, "Name of the cookie. null is `.AspNetCore.` and the scheme.", convert=or_empty
    )
    path: str = text("CookiePath", None, "Path of the cookie. null is `/`.", convert=_or("/"))
    domain: str | None = text("CookieDomain", None, "Domain of the cookie. null: no domain.")
    persistent: bool = flag("CookieMultiSessions", True, "Keep the cookie when the browser is closed.")
    """Whether the cookie outlives the browser. The lifetime of the session does not depend on it."""
    http_only: bool = flag("CookieHttpOnly", True, "Hide the cookie from scripts.")
    same_site: str | None = choice(
        "CookieSameSite",
        "Strict Lax None Unspecified",
        None,
        "SameSite of the cookie. null is Lax.",
        convert=same_site_attribute,
    )
    """Value of the attribute; None: left out."""
    secure: str = choice(
        "CookieSecure",
        "SameAsRequest Always None",
        None,
        "When the cookie is limited to https. null is SameAsRequest.",
        convert=_or("SameAsRequest"),
    )

    def __post_init__(self) -> None:
        if not self.cookie:
            object.__setattr__(self, "cookie", f".AspNetCore.{self.name}")


@section("Auth", switch="BearerTokenAuth")
class BearerScheme:
    """An encrypted token in the Authorization header."""

    bearer_token_auth = flag("BearerTokenAuth", False, "Offer opaque bearer tokens.")
    name: str = text(
        "BearerTokenAuthScheme",
        None,
        "Name by which a login selects bearer tokens. null: `BearerToken`.",
        convert=_or("BearerToken"),
    )
    expire: float = _interval(
        "BearerTokenExpire", "1 hour", "Lifetime of both tokens, access and refresh. null is 1 hour."
    )
    refresh_path: str | None = text(
        "BearerTokenRefreshPath",
        "/api/token/refresh",
        'Path at which POST `{"refresh": …}` returns new tokens. null: none.',
        nullable=True,
    )


@section("Auth")
class JwtFiles:
    """Files with keys of a JWT scheme, which are read at the start."""

    signing: str | None = text(
        "JwtSigningKeyPath",
        None,
        "PEM file of a private key that signs instead of JwtSecret: RS256, ES256, ES384 or EdDSA, by type of the key.",
    )
    password: str | None = text("JwtSigningKeyPassword", None, "Password of that file.", secret=True)
    verification: str | None = text(
        "JwtVerificationKeyPath", None, "PEM file of a public key; tokens that it verifies are accepted too."
    )


@section("Auth", switch="JwtAuth")
class JwtScheme:
    """A signed token that other services can verify."""

    jwt_auth = flag("JwtAuth", False, "Offer signed tokens (JWT).")
    name: str = text(
        "JwtAuthScheme",
        None,
        "Name by which a login selects signed tokens. null: `Bearer`.",
        convert=_or("Bearer"),
    )
    secret: str | None = text("JwtSecret", None, "Secret of the HS256 signature: 32 characters or more.", secret=True)
    files = part(JwtFiles)
    key_set_url: str | None = text(
        "JwtKeySetUrl", None, "URL of a JWKS document; tokens that one of its keys verifies are accepted too."
    )
    key_set_fresh: float = interval(
        "JwtKeySetRefreshInterval", "10 minutes", "Interval between fetches of the JWKS document."
    )
    key_set_longest: float = interval(
        "JwtKeySetMaxAge", "1 hour", "How long keys of the JWKS document stay valid if it cannot be fetched."
    )
    issuer: str | None = text(
        "JwtIssuer", None, "`iss` of issued tokens, and the value that JwtValidateIssuer requires."
    )
    audience: str | None = text(
        "JwtAudience", None, "`aud` of issued tokens, and the value that JwtValidateAudience requires."
    )
    expire: float = _interval("JwtExpire", "60 minutes", "Lifetime of an access token. null is 60 minutes.")
    refresh_expire: float = _interval("JwtRefreshExpire", "7 days", "Lifetime of a refresh token. null is 7 days.")
    validate_issuer: bool | None = if_set(
        flag(
            "JwtValidateIssuer",
            False,
            "Refuse tokens of another issuer. With JwtKeySetUrl or JwtVerificationKeyPath this is the default, "
            "unless the key is set to false.",
        )
    )
    validate_audience: bool | None = if_set(
        flag("JwtValidateAudience", False, "Refuse tokens for another audience, with the same default.")
    )
    validate_lifetime: bool = flag("JwtValidateLifetime", True, "Refuse tokens that are not yet valid or expired.")
    jwt_validate_issuer_signing_key = flag(
        "JwtValidateIssuerSigningKey", True, "Accepted; the signature of a token is always checked."
    )
    clock_skew: float = _lenient_interval(
        "JwtClockSkew", "5 minutes", "Accepted difference of clocks. null, or a text that is no interval: 5 minutes."
    )
    refresh_path: str | None = text(
        "JwtRefreshPath",
        "/api/jwt/refresh",
        'Path at which POST `{"refreshToken": …}` returns a new pair. null: none.',
        nullable=True,
    )
    signing_key: bytes | None = field(default=None, repr=False)
    """PEM of a private key, used instead of the secret."""
    verification_key: bytes | None = None
    """PEM of a public key; tokens signed with its private key are accepted too."""


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

    @property
    def signs_in(self) -> bool:
        """Whether there is a scheme for the session of a sign-in. API keys form no session."""
        return self.default is not None

    def all(self) -> Iterator[Scheme]:
        """Yield the schemes: cookies, bearer tokens, JWTs."""
        yield from self.cookies
        yield from self.bearers
        yield from self.jwts

    def find(self, name: str) -> Scheme | None:
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
