"""Keys of authentication schemes: cookies, opaque bearer tokens, JWTs, and named schemes of each kind (sign-in-1,
sign-in-2)."""

from __future__ import annotations

from rowcall.core.auth.options import ApiKeys, SessionCheck
from rowcall.core.sections.declaration import choice, flag, interval, object_map, only_for, part, section, text, texts


@section("Auth:Schemes:<name>")
class NamedScheme:
    type = choice("Type", "Cookies BearerToken Jwt", None, "Kind of the scheme. Required.")
    enabled = flag("Enabled", True, "Offer the scheme.")
    cookie_valid = only_for("Cookies", interval("CookieValid", None, "Lifetime of a session. null takes Auth's."))
    cookie_name = only_for(
        "Cookies",
        text(
            "CookieName",
            None,
            "Name of the cookie; no two schemes may share one. null is `.AspNetCore.` and the scheme.",
        ),
    )
    cookie_path = only_for("Cookies", text("CookiePath", None, "Path of the cookie. null takes Auth's."))
    cookie_domain = only_for("Cookies", text("CookieDomain", None, "Domain of the cookie. null takes Auth's."))
    cookie_multi_sessions = only_for(
        "Cookies", flag("CookieMultiSessions", None, "Keep the cookie when the browser is closed. null takes Auth's.")
    )
    cookie_http_only = only_for(
        "Cookies", flag("CookieHttpOnly", None, "Hide the cookie from scripts. null takes Auth's.")
    )
    cookie_same_site = only_for(
        "Cookies",
        choice("CookieSameSite", "Strict Lax None Unspecified", None, "SameSite of the cookie. null takes Auth's."),
    )
    cookie_secure = only_for(
        "Cookies",
        choice(
            "CookieSecure", "SameAsRequest Always None", None, "When the cookie is limited to https. null takes Auth's."
        ),
    )
    bearer_token_expire = only_for(
        "BearerToken", interval("BearerTokenExpire", None, "Lifetime of the tokens. null takes Auth's.")
    )
    bearer_token_refresh_path = only_for(
        "BearerToken", text("BearerTokenRefreshPath", None, "Refresh path of this scheme only. null: none.")
    )
    jwt_secret = only_for(
        "Jwt", text("JwtSecret", None, "Secret of 32 characters or more. null takes Auth's.", secret=True)
    )
    jwt_signing_key_path = only_for(
        "Jwt", text("JwtSigningKeyPath", None, "PEM file of a private key. null takes Auth's.")
    )
    jwt_signing_key_password = only_for(
        "Jwt", text("JwtSigningKeyPassword", None, "Password of that file. null takes Auth's.", secret=True)
    )
    jwt_verification_key_path = only_for(
        "Jwt", text("JwtVerificationKeyPath", None, "PEM file of a public key. null takes Auth's.")
    )
    jwt_key_set_url = only_for("Jwt", text("JwtKeySetUrl", None, "URL of a JWKS document. null takes Auth's."))
    jwt_key_set_refresh_interval = only_for(
        "Jwt",
        interval("JwtKeySetRefreshInterval", None, "Interval between fetches of the document. null takes Auth's."),
    )
    jwt_key_set_max_age = only_for(
        "Jwt", interval("JwtKeySetMaxAge", None, "How long its keys stay valid without a fetch. null takes Auth's.")
    )
    jwt_issuer = only_for("Jwt", text("JwtIssuer", None, "Issuer. null takes Auth's."))
    jwt_audience = only_for("Jwt", text("JwtAudience", None, "Audience. null takes Auth's."))
    jwt_expire = only_for("Jwt", interval("JwtExpire", None, "Lifetime of an access token. null takes Auth's."))
    jwt_refresh_expire = only_for(
        "Jwt", interval("JwtRefreshExpire", None, "Lifetime of a refresh token. null takes Auth's.")
    )
    jwt_clock_skew = only_for(
        "Jwt", interval("JwtClockSkew", None, "Accepted difference of clocks. null takes Auth's.")
    )
    jwt_validate_issuer = only_for("Jwt", flag("JwtValidateIssuer", None, "Refuse other issuers. null takes Auth's."))
    jwt_validate_audience = only_for(
        "Jwt", flag("JwtValidateAudience", None, "Refuse other audiences. null takes Auth's.")
    )
    jwt_validate_lifetime = only_for("Jwt", flag("JwtValidateLifetime", None, "Check the lifetime. null takes Auth's."))
    jwt_validate_issuer_signing_key = only_for(
        "Jwt", flag("JwtValidateIssuerSigningKey", None, "Accepted; the signature of a token is always checked.")
    )
    jwt_refresh_path = only_for("Jwt", text("JwtRefreshPath", None, "Refresh path of this scheme only. null: none."))


@section("Auth", "Authentication of callers.")
class Authentication:
    cookie_auth = flag("CookieAuth", False, "Offer sessions in a cookie.")
    cookie_auth_scheme = text("CookieAuthScheme", None, "Name by which a login selects cookies. null: `Cookies`.")
    cookie_valid = interval("CookieValid", "14 days", "Lifetime of a session. null: 14 days.", nullable=True)
    cookie_name = text("CookieName", None, "Name of the cookie. null is `.AspNetCore.` and the scheme.")
    cookie_path = text("CookiePath", None, "Path of the cookie. null is `/`.")
    cookie_domain = text("CookieDomain", None, "Domain of the cookie. null: no domain.")
    cookie_multi_sessions = flag("CookieMultiSessions", True, "Keep the cookie when the browser is closed.")
    cookie_http_only = flag("CookieHttpOnly", True, "Hide the cookie from scripts.")
    cookie_same_site = choice(
        "CookieSameSite", "Strict Lax None Unspecified", None, "SameSite of the cookie. null is Lax."
    )
    cookie_secure = choice(
        "CookieSecure", "SameAsRequest Always None", None, "When the cookie is limited to https. null is SameAsRequest."
    )
    refuse_cross_site = flag(
        "RefuseCrossSite",
        True,
        "For requests with a session cookie or HTTP Basic from pages of other origins: refuse sign-in and all "
        "methods but GET, HEAD, OPTIONS and QUERY. With a cookie, refuse also JSON that is sent as text/plain.",
    )
    trusted_origins = texts(
        "TrustedOrigins",
        (),
        "Origins that RefuseCrossSite does not refuse, such as `https://app.example`; those of "
        "Cors:AllowedOrigins are added, except `*`.",
    )
    bearer_token_auth = flag("BearerTokenAuth", False, "Offer opaque bearer tokens.")
    bearer_token_auth_scheme = text(
        "BearerTokenAuthScheme", None, "Name by which a login selects bearer tokens. null: `BearerToken`."
    )
    bearer_token_expire = interval(
        "BearerTokenExpire", "1 hour", "Lifetime of both tokens, access and refresh. null is 1 hour.", nullable=True
    )
    bearer_token_refresh_path = text(
        "BearerTokenRefreshPath",
        "/api/token/refresh",
        'Path at which POST `{"refresh": …}` returns new tokens. null: none.',
        nullable=True,
    )
    jwt_auth = flag("JwtAuth", False, "Offer signed tokens (JWT).")
    jwt_auth_scheme = text("JwtAuthScheme", None, "Name by which a login selects signed tokens. null: `Bearer`.")
    jwt_secret = text("JwtSecret", None, "Secret of the HS256 signature: 32 characters or more.", secret=True)
    jwt_signing_key_path = text(
        "JwtSigningKeyPath",
        None,
        "PEM file of a private key that signs instead of JwtSecret: RS256, ES256, ES384 or EdDSA, by type of the key.",
    )
    jwt_signing_key_password = text("JwtSigningKeyPassword", None, "Password of that file.", secret=True)
    jwt_verification_key_path = text(
        "JwtVerificationKeyPath", None, "PEM file of a public key; tokens that it verifies are accepted too."
    )
    jwt_key_set_url = text(
        "JwtKeySetUrl", None, "URL of a JWKS document; tokens that one of its keys verifies are accepted too."
    )
    jwt_key_set_refresh_interval = interval(
        "JwtKeySetRefreshInterval", "10 minutes", "Interval between fetches of the JWKS document."
    )
    jwt_key_set_max_age = interval(
        "JwtKeySetMaxAge", "1 hour", "How long keys of the JWKS document stay valid if it cannot be fetched."
    )
    jwt_issuer = text("JwtIssuer", None, "`iss` of issued tokens, and the value that JwtValidateIssuer requires.")
    jwt_audience = text("JwtAudience", None, "`aud` of issued tokens, and the value that JwtValidateAudience requires.")
    jwt_expire = interval("JwtExpire", "60 minutes", "Lifetime of an access token. null is 60 minutes.", nullable=True)
    jwt_refresh_expire = interval(
        "JwtRefreshExpire", "7 days", "Lifetime of a refresh token. null is 7 days.", nullable=True
    )
    jwt_validate_issuer = flag(
        "JwtValidateIssuer",
        False,
        "Refuse tokens of another issuer. With JwtKeySetUrl or JwtVerificationKeyPath this is the default, "
        "unless the key is set to false.",
    )
    jwt_validate_audience = flag(
        "JwtValidateAudience", False, "Refuse tokens for another audience, with the same default."
    )
    jwt_validate_lifetime = flag("JwtValidateLifetime", True, "Refuse tokens that are not yet valid or expired.")
    jwt_validate_issuer_signing_key = flag(
        "JwtValidateIssuerSigningKey", True, "Accepted; the signature of a token is always checked."
    )
    jwt_clock_skew = interval(
        "JwtClockSkew", "5 minutes", "Accepted difference of clocks. null: 5 minutes.", nullable=True
    )
    jwt_refresh_path = text(
        "JwtRefreshPath",
        "/api/jwt/refresh",
        'Path at which POST `{"refreshToken": …}` returns a new pair. null: none.',
        nullable=True,
    )
    refresh_token_single_use = flag(
        "RefreshTokenSingleUse",
        True,
        "Accept each refresh token once. A second use ends all tokens that derive from the same sign-in.",
    )
    refresh_token_use_command = text(
        "RefreshTokenUseCommand",
        None,
        "SQL that records a use of a refresh token and returns whether it is the first: $1 family, $2 "
        "generation, $3 end of its lifetime. null: uses are stored in memory, or beside the keys with "
        "`DataProtection:Storage` FileSystem.",
    )
    api_keys = part(ApiKeys)
    session_check = part(SessionCheck)
    schemes = object_map(
        "Schemes", {}, "Further schemes, by the name with which a login selects them.", elements=NamedScheme
    )
