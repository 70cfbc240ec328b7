"""Keys of authentication schemes: cookies, opaque bearer tokens, JWTs, and named schemes of each kind (sign-in-1,
sign-in-2)."""

from __future__ import annotations

from rowcall.core.auth.options import ApiKeys, CrossSite, RefreshTokens, SessionCheck
from rowcall.core.auth.schemes import BearerScheme, CookieScheme, JwtScheme
from rowcall.core.sections.declaration import choice, flag, interval, object_map, only_for, part, section, text


@section("Auth:Schemes:<name>")
class NamedCookie:
    """Options of a named scheme of cookies. For a value that is None, that of the main scheme applies, except for the
    name of the cookie, which is then derived from that of the scheme. Times in seconds."""

    valid: float | None = only_for(
        "Cookies", interval("CookieValid", None, "Lifetime of a session. null takes Auth's.")
    )
    cookie: str | None = only_for(
        "Cookies",
        text(
            "CookieName",
            None,
            "Name of the cookie; no two schemes may share one. null is `.AspNetCore.` and the scheme.",
        ),
    )
    path: str | None = only_for("Cookies", text("CookiePath", None, "Path of the cookie. null takes Auth's."))
    domain: str | None = only_for("Cookies", text("CookieDomain", None, "Domain of the cookie. null takes Auth's."))
    persistent: bool | None = only_for(
        "Cookies", flag("CookieMultiSessions", None, "Keep the cookie when the browser is closed. null takes Auth's.")
    )
    http_only: bool | None = only_for(
        "Cookies", flag("CookieHttpOnly", None, "Hide the cookie from scripts. null takes Auth's.")
    )
    same_site: str | None = only_for(
        "Cookies",
        choice("CookieSameSite", "Strict Lax None Unspecified", None, "SameSite of the cookie. null takes Auth's."),
    )
    secure: str | None = only_for(
        "Cookies",
        choice(
            "CookieSecure", "SameAsRequest Always None", None, "When the cookie is limited to https. null takes Auth's."
        ),
    )


@section("Auth:Schemes:<name>")
class NamedBearer:
    """Options of a named scheme of opaque bearer tokens. For a lifetime (in seconds) that is None, that of the main
    scheme applies. refresh_path: None: tokens of this scheme cannot be refreshed."""

    expire: float | None = only_for(
        "BearerToken", interval("BearerTokenExpire", None, "Lifetime of the tokens. null takes Auth's.")
    )
    refresh_path: str | None = only_for(
        "BearerToken", text("BearerTokenRefreshPath", None, "Refresh path of this scheme only. null: none.")
    )


@section("Auth:Schemes:<name>")
class NamedJwtFiles:
    signing: str | None = only_for(
        "Jwt", text("JwtSigningKeyPath", None, "PEM file of a private key. null takes Auth's.")
    )
    password: str | None = only_for(
        "Jwt", text("JwtSigningKeyPassword", None, "Password of that file. null takes Auth's.", secret=True)
    )
    verification: str | None = only_for(
        "Jwt", text("JwtVerificationKeyPath", None, "PEM file of a public key. null takes Auth's.")
    )


@section("Auth:Schemes:<name>")
class NamedJwt:
    """Options of a named scheme of JWTs. For a value that is None, that of the main scheme applies. Times in seconds.
    refresh_path: None: tokens of this scheme cannot be refreshed."""

    secret: str | None = only_for(
        "Jwt", text("JwtSecret", None, "Secret of 32 characters or more. null takes Auth's.", secret=True)
    )
    files = part(NamedJwtFiles)
    key_set_url: str | None = only_for("Jwt", text("JwtKeySetUrl", None, "URL of a JWKS document. null takes Auth's."))
    key_set_fresh: float | None = only_for(
        "Jwt",
        interval("JwtKeySetRefreshInterval", None, "Interval between fetches of the document. null takes Auth's."),
    )
    key_set_longest: float | None = only_for(
        "Jwt", interval("JwtKeySetMaxAge", None, "How long its keys stay valid without a fetch. null takes Auth's.")
    )
    issuer: str | None = only_for("Jwt", text("JwtIssuer", None, "Issuer. null takes Auth's."))
    audience: str | None = only_for("Jwt", text("JwtAudience", None, "Audience. null takes Auth's."))
    expire: float | None = only_for(
        "Jwt", interval("JwtExpire", None, "Lifetime of an access token. null takes Auth's.")
    )
    refresh_expire: float | None = only_for(
        "Jwt", interval("JwtRefreshExpire", None, "Lifetime of a refresh token. null takes Auth's.")
    )
    clock_skew: float | None = only_for(
        "Jwt", interval("JwtClockSkew", None, "Accepted difference of clocks. null takes Auth's.")
    )
    validate_issuer: bool | None = only_for(
        "Jwt", flag("JwtValidateIssuer", None, "Refuse other issuers. null takes Auth's.")
    )
    validate_audience: bool | None = only_for(
        "Jwt", flag("JwtValidateAudience", None, "Refuse other audiences. null takes Auth's.")
    )
    validate_lifetime: bool | None = only_for(
        "Jwt", flag("JwtValidateLifetime", None, "Check the lifetime. null takes Auth's.")
    )
    jwt_validate_issuer_signing_key = only_for(
        "Jwt", flag("JwtValidateIssuerSigningKey", None, "Accepted; the signature of a token is always checked.")
    )
    refresh_path: str | None = only_for(
        "Jwt", text("JwtRefreshPath", None, "Refresh path of this scheme only. null: none.")
    )


@section("Auth:Schemes:<name>")
class NamedScheme:
    type: str | None = choice("Type", "Cookies BearerToken Jwt", None, "Kind of the scheme. Required.")
    enabled = flag("Enabled", True, "Offer the scheme.")
    cookie = part(NamedCookie)
    bearer = part(NamedBearer)
    jwt = part(NamedJwt)


@section("Auth", "Authentication of callers.")
class Authentication:
    cookies = part(CookieScheme)
    cross_site = part(CrossSite)
    bearer_tokens = part(BearerScheme)
    jwt = part(JwtScheme)
    refresh_tokens = part(RefreshTokens)
    api_keys = part(ApiKeys)
    session_check = part(SessionCheck)
    schemes = object_map(
        "Schemes", {}, "Further schemes, by the name with which a login selects them.", elements=NamedScheme
    )
