"""Keys of authentication schemes: cookies, opaque bearer tokens, JWTs, and named schemes of each kind (sign-in-1,
sign-in-2)."""

from rowcall.core.sections.keys import Key, choice, flag, interval, object_map, only_for, section, text, texts

_P = "Auth:"
_S = "Auth:Schemes:<name>:"
_SAME_SITE = "Strict Lax None Unspecified"
_SECURE = "SameAsRequest Always None"

ROWS: tuple[Key, ...] = (
    section("Auth", "Authentication of callers."),
    flag(_P + "CookieAuth", False, "Offer sessions in a cookie."),
    text(_P + "CookieAuthScheme", None, "Name by which a login selects cookies. null: `Cookies`."),
    interval(_P + "CookieValid", "14 days", "Lifetime of a session. null: 14 days.", nullable=True),
    text(_P + "CookieName", None, "Name of the cookie. null is `.AspNetCore.` and the scheme."),
    text(_P + "CookiePath", None, "Path of the cookie. null is `/`."),
    text(_P + "CookieDomain", None, "Domain of the cookie. null: no domain."),
    flag(_P + "CookieMultiSessions", True, "Keep the cookie when the browser is closed."),
    flag(_P + "CookieHttpOnly", True, "Hide the cookie from scripts."),
    choice(_P + "CookieSameSite", _SAME_SITE, None, "SameSite of the cookie. null is Lax."),
    choice(_P + "CookieSecure", _SECURE, None, "When the cookie is limited to https. null is SameAsRequest."),
    flag(
        _P + "RefuseCrossSite",
        True,
        "For requests with a session cookie or HTTP Basic from pages of other origins: refuse sign-in and all methods "
        "but GET, HEAD, OPTIONS and QUERY. With a cookie, refuse also JSON that is sent as text/plain.",
    ),
    texts(
        _P + "TrustedOrigins",
        (),
        "Origins that RefuseCrossSite does not refuse, such as `https://app.example`; those of Cors:AllowedOrigins are "
        "added, except `*`.",
    ),
    flag(_P + "BearerTokenAuth", False, "Offer opaque bearer tokens."),
    text(_P + "BearerTokenAuthScheme", None, "Name by which a login selects bearer tokens. null: `BearerToken`."),
    interval(
        _P + "BearerTokenExpire",
        "1 hour",
        "Lifetime of both tokens, access and refresh. null is 1 hour.",
        nullable=True,
    ),
    text(
        _P + "BearerTokenRefreshPath",
        "/api/token/refresh",
        'Path at which POST `{"refresh": …}` returns new tokens. null: none.',
        nullable=True,
    ),
    flag(_P + "JwtAuth", False, "Offer signed tokens (JWT)."),
    text(_P + "JwtAuthScheme", None, "Name by which a login selects signed tokens. null: `Bearer`."),
    text(_P + "JwtSecret", None, "Secret of the HS256 signature: 32 characters or more.", secret=True),
    text(
        _P + "JwtSigningKeyPath",
        None,
        "PEM file of a private key that signs instead of JwtSecret: RS256, ES256, ES384 or EdDSA, by type of the key.",
    ),
    text(_P + "JwtSigningKeyPassword", None, "Password of that file.", secret=True),
    text(_P + "JwtVerificationKeyPath", None, "PEM file of a public key; tokens that it verifies are accepted too."),
    text(_P + "JwtKeySetUrl", None, "URL of a JWKS document; tokens that one of its keys verifies are accepted too."),
    interval(_P + "JwtKeySetRefreshInterval", "10 minutes", "Interval between fetches of the JWKS document."),
    interval(
        _P + "JwtKeySetMaxAge", "1 hour", "How long keys of the JWKS document stay valid if it cannot be fetched."
    ),
    text(_P + "JwtIssuer", None, "`iss` of issued tokens, and the value that JwtValidateIssuer requires."),
    text(_P + "JwtAudience", None, "`aud` of issued tokens, and the value that JwtValidateAudience requires."),
    interval(_P + "JwtExpire", "60 minutes", "Lifetime of an access token. null is 60 minutes.", nullable=True),
    interval(_P + "JwtRefreshExpire", "7 days", "Lifetime of a refresh token. null is 7 days.", nullable=True),
    flag(
        _P + "JwtValidateIssuer",
        False,
        "Refuse tokens of another issuer. With JwtKeySetUrl or JwtVerificationKeyPath this is the default, unless the "
        "key is set to false.",
    ),
    flag(_P + "JwtValidateAudience", False, "Refuse tokens for another audience, with the same default."),
    flag(_P + "JwtValidateLifetime", True, "Refuse tokens that are not yet valid or expired."),
    flag(_P + "JwtValidateIssuerSigningKey", True, "Accepted; the signature of a token is always checked."),
    interval(_P + "JwtClockSkew", "5 minutes", "Accepted difference of clocks. null: 5 minutes.", nullable=True),
    text(
        _P + "JwtRefreshPath",
        "/api/jwt/refresh",
        'Path at which POST `{"refreshToken": …}` returns a new pair. null: none.',
        nullable=True,
    ),
    flag(
        _P + "RefreshTokenSingleUse",
        True,
        "Accept each refresh token once. A second use ends all tokens that derive from the same sign-in.",
    ),
    text(
        _P + "RefreshTokenUseCommand",
        None,
        "SQL that records a use of a refresh token and returns whether it is the first: $1 family, $2 generation, $3 "
        "end of its lifetime. null: uses are kept in memory, or beside the keys with `DataProtection:Storage` "
        "FileSystem.",
    ),
    section(_P + "ApiKey", "API keys, which programs send with each request."),
    flag(_P + "ApiKey:Enabled", False, "Accept API keys."),
    text(_P + "ApiKey:Header", "X-Api-Key", "Request header with the API key."),
    text(
        _P + "ApiKey:Command",
        "select * from api_key($1)",
        "Query that finds the user of a key: $1 SHA-256 of the key in hex, $2 address of the client. Returns a login "
        "row.",
    ),
    interval(
        _P + "ApiKey:CacheDuration", "10 seconds", "How long the result is cached. 0: the query runs for each request."
    ),
    text(
        _P + "SessionCheckCommand",
        None,
        "Query that returns whether a session is still valid (boolean): $1 session id, $2 user id. null: no check.",
    ),
    text(
        _P + "SessionClaimType", "session_id", "Claim with the id of the session; a session without it is not checked."
    ),
    interval(
        _P + "SessionCheckInterval", "10 seconds", "How long the result is cached. 0: the query runs for each request."
    ),
    object_map(_P + "Schemes", {}, "Further schemes, by the name with which a login selects them."),
    choice(_S + "Type", "Cookies BearerToken Jwt", None, "Kind of the scheme. Required."),
    flag(_S + "Enabled", True, "Offer the scheme."),
    *only_for(
        "Cookies",
        interval(_S + "CookieValid", None, "Lifetime of a session. null takes Auth's."),
        text(
            _S + "CookieName",
            None,
            "Name of the cookie; no two schemes may share one. null is `.AspNetCore.` and the scheme.",
        ),
        text(_S + "CookiePath", None, "Path of the cookie. null takes Auth's."),
        text(_S + "CookieDomain", None, "Domain of the cookie. null takes Auth's."),
        flag(_S + "CookieMultiSessions", None, "Keep the cookie when the browser is closed. null takes Auth's."),
        flag(_S + "CookieHttpOnly", None, "Hide the cookie from scripts. null takes Auth's."),
        choice(_S + "CookieSameSite", _SAME_SITE, None, "SameSite of the cookie. null takes Auth's."),
        choice(_S + "CookieSecure", _SECURE, None, "When the cookie is limited to https. null takes Auth's."),
    ),
    *only_for(
        "BearerToken",
        interval(_S + "BearerTokenExpire", None, "Lifetime of the tokens. null takes Auth's."),
        text(_S + "BearerTokenRefreshPath", None, "Refresh path of this scheme only. null: none."),
    ),
    *only_for(
        "Jwt",
        text(_S + "JwtSecret", None, "Secret of 32 characters or more. null takes Auth's.", secret=True),
        text(_S + "JwtSigningKeyPath", None, "PEM file of a private key. null takes Auth's."),
        text(_S + "JwtSigningKeyPassword", None, "Password of that file. null takes Auth's.", secret=True),
        text(_S + "JwtVerificationKeyPath", None, "PEM file of a public key. null takes Auth's."),
        text(_S + "JwtKeySetUrl", None, "URL of a JWKS document. null takes Auth's."),
        interval(_S + "JwtKeySetRefreshInterval", None, "Interval between fetches of the document. null takes Auth's."),
        interval(_S + "JwtKeySetMaxAge", None, "How long its keys stay valid without a fetch. null takes Auth's."),
        text(_S + "JwtIssuer", None, "Issuer. null takes Auth's."),
        text(_S + "JwtAudience", None, "Audience. null takes Auth's."),
        interval(_S + "JwtExpire", None, "Lifetime of an access token. null takes Auth's."),
        interval(_S + "JwtRefreshExpire", None, "Lifetime of a refresh token. null takes Auth's."),
        interval(_S + "JwtClockSkew", None, "Accepted difference of clocks. null takes Auth's."),
        flag(_S + "JwtValidateIssuer", None, "Refuse other issuers. null takes Auth's."),
        flag(_S + "JwtValidateAudience", None, "Refuse other audiences. null takes Auth's."),
        flag(_S + "JwtValidateLifetime", None, "Check the lifetime. null takes Auth's."),
        flag(_S + "JwtValidateIssuerSigningKey", None, "Accepted; the signature of a token is always checked."),
        text(_S + "JwtRefreshPath", None, "Refresh path of this scheme only. null: none."),
    ),
)
