"""Keys of authentication schemes: cookies, opaque bearer tokens, JWTs, and named schemes of each kind (sign-in-1,
sign-in-2)."""

from rowcall.core.config.keys import Key, choice, flag, interval, object_map, only_for, section, text, texts

_P = "Auth:"
_S = "Auth:Schemes:<name>:"
_SAME_SITE = "Strict Lax None Unspecified"
_SECURE = "SameAsRequest Always None"

ROWS: tuple[Key, ...] = (
    section("Auth", "How callers prove who they are."),
    flag(_P + "CookieAuth", False, "Offer sessions in a cookie."),
    text(_P + "CookieAuthScheme", None, "Name under which a login picks cookies. null is `Cookies`."),
    interval(_P + "CookieValid", "14 days", "How long a session lasts. null is 14 days.", nullable=True),
    text(_P + "CookieName", None, "Name of the cookie. null is `.AspNetCore.` and the scheme."),
    text(_P + "CookiePath", None, "Path of the cookie. null is `/`."),
    text(_P + "CookieDomain", None, "Domain of the cookie. null sends none."),
    flag(_P + "CookieMultiSessions", True, "Keep the cookie when the browser is closed."),
    flag(_P + "CookieHttpOnly", True, "Hide the cookie from scripts."),
    choice(_P + "CookieSameSite", _SAME_SITE, None, "SameSite of the cookie. null is Lax."),
    choice(_P + "CookieSecure", _SECURE, None, "When the cookie is limited to https. null is SameAsRequest."),
    flag(
        _P + "RefuseCrossSite",
        True,
        "Where a session comes by cookie, or a name by HTTP Basic: refuse sign-in and all methods but GET, HEAD, "
        "OPTIONS and QUERY to pages of other origins, and with a cookie JSON that is sent as text/plain.",
    ),
    texts(
        _P + "TrustedOrigins",
        (),
        "Origins whose pages may do it all the same, such as `https://app.example`; those of Cors:AllowedOrigins may "
        "too, but for `*`.",
    ),
    flag(_P + "BearerTokenAuth", False, "Offer opaque bearer tokens."),
    text(_P + "BearerTokenAuthScheme", None, "Name under which a login picks them. null is `BearerToken`."),
    interval(
        _P + "BearerTokenExpire",
        "1 hour",
        "Lifetime of both tokens, access and refresh. null is 1 hour.",
        nullable=True,
    ),
    text(
        _P + "BearerTokenRefreshPath",
        "/api/token/refresh",
        'Path where POST `{"refresh": …}` gives new tokens. null offers none.',
        nullable=True,
    ),
    flag(_P + "JwtAuth", False, "Offer signed tokens (JWT)."),
    text(_P + "JwtAuthScheme", None, "Name under which a login picks them. null is `Bearer`."),
    text(_P + "JwtSecret", None, "Secret of the HS256 signature: 32 characters or more.", secret=True),
    text(
        _P + "JwtSigningKeyPath",
        None,
        "PEM file of a private key that signs in place of JwtSecret: RS256, ES256, ES384 or EdDSA, as its kind says.",
    ),
    text(_P + "JwtSigningKeyPassword", None, "Password of that file.", secret=True),
    text(_P + "JwtVerificationKeyPath", None, "PEM file of a public key; tokens that it verifies are taken too."),
    text(_P + "JwtKeySetUrl", None, "Address of a JWKS document; tokens that one of its keys verifies are taken too."),
    interval(_P + "JwtKeySetRefreshInterval", "10 minutes", "How often that document is fetched again."),
    interval(_P + "JwtKeySetMaxAge", "1 hour", "How long its keys are believed when it cannot be fetched."),
    text(_P + "JwtIssuer", None, "`iss` of issued tokens, and what JwtValidateIssuer demands."),
    text(_P + "JwtAudience", None, "`aud` of issued tokens, and what JwtValidateAudience demands."),
    interval(_P + "JwtExpire", "60 minutes", "Lifetime of an access token. null is 60 minutes.", nullable=True),
    interval(_P + "JwtRefreshExpire", "7 days", "Lifetime of a refresh token. null is 7 days.", nullable=True),
    flag(
        _P + "JwtValidateIssuer",
        False,
        "Refuse tokens of another issuer. Where keys of others are taken (JwtKeySetUrl, JwtVerificationKeyPath) that "
        "is so unless this key is there and false.",
    ),
    flag(_P + "JwtValidateAudience", False, "Refuse tokens for another audience; likewise."),
    flag(_P + "JwtValidateLifetime", True, "Refuse tokens that are not valid yet or no longer."),
    flag(_P + "JwtValidateIssuerSigningKey", True, "Accepted; the signature of a token is always checked."),
    interval(_P + "JwtClockSkew", "5 minutes", "How far clocks may differ. null is 5 minutes.", nullable=True),
    text(
        _P + "JwtRefreshPath",
        "/api/jwt/refresh",
        'Path where POST `{"refreshToken": …}` gives a new pair. null offers none.',
        nullable=True,
    ),
    flag(
        _P + "RefreshTokenSingleUse",
        True,
        "Take a refresh token once. One that comes again ends every token that followed from its sign-in.",
    ),
    text(
        _P + "RefreshTokenUseCommand",
        None,
        "SQL that writes such a use down and tells if it is the first: $1 family, $2 generation, $3 until when. "
        "null keeps them in memory, or beside the keys with `DataProtection:Storage` FileSystem.",
    ),
    section(_P + "ApiKey", "Keys that programs send with each request."),
    flag(_P + "ApiKey:Enabled", False, "Take them."),
    text(_P + "ApiKey:Header", "X-Api-Key", "Request header that holds the key."),
    text(
        _P + "ApiKey:Command",
        "select * from api_key($1)",
        "Query that finds whose it is: $1 SHA-256 of the key in hex, $2 address of the client. Its row is a login row.",
    ),
    interval(_P + "ApiKey:CacheDuration", "10 seconds", "How long its answer is good. 0 asks for each request."),
    text(
        _P + "SessionCheckCommand",
        None,
        "Query that tells whether a session still holds: $1 its id, $2 the user's id; true or false. null asks nobody.",
    ),
    text(_P + "SessionClaimType", "session_id", "Claim that is the id of a session; without it nothing is asked."),
    interval(_P + "SessionCheckInterval", "10 seconds", "How long that answer is good. 0 asks for each request."),
    object_map(_P + "Schemes", {}, "More schemes, by the name a login asks for."),
    choice(_S + "Type", "Cookies BearerToken Jwt", None, "Kind of the scheme. Needed."),
    flag(_S + "Enabled", True, "Offer the scheme."),
    *only_for(
        "Cookies",
        interval(_S + "CookieValid", None, "How long a session lasts. null takes Auth's."),
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
        text(_S + "BearerTokenRefreshPath", None, "Refresh path of this scheme alone. null offers none."),
    ),
    *only_for(
        "Jwt",
        text(_S + "JwtSecret", None, "Secret of 32 characters or more. null takes Auth's.", secret=True),
        text(_S + "JwtSigningKeyPath", None, "PEM file of a private key. null takes Auth's."),
        text(_S + "JwtSigningKeyPassword", None, "Password of that file. null takes Auth's.", secret=True),
        text(_S + "JwtVerificationKeyPath", None, "PEM file of a public key. null takes Auth's."),
        text(_S + "JwtKeySetUrl", None, "Address of a JWKS document. null takes Auth's."),
        interval(_S + "JwtKeySetRefreshInterval", None, "How often it is fetched. null takes Auth's."),
        interval(_S + "JwtKeySetMaxAge", None, "How long its keys are believed. null takes Auth's."),
        text(_S + "JwtIssuer", None, "Issuer. null takes Auth's."),
        text(_S + "JwtAudience", None, "Audience. null takes Auth's."),
        interval(_S + "JwtExpire", None, "Lifetime of an access token. null takes Auth's."),
        interval(_S + "JwtRefreshExpire", None, "Lifetime of a refresh token. null takes Auth's."),
        interval(_S + "JwtClockSkew", None, "How far clocks may differ. null takes Auth's."),
        flag(_S + "JwtValidateIssuer", None, "Refuse other issuers. null takes Auth's."),
        flag(_S + "JwtValidateAudience", None, "Refuse other audiences. null takes Auth's."),
        flag(_S + "JwtValidateLifetime", None, "Check the lifetime. null takes Auth's."),
        flag(_S + "JwtValidateIssuerSigningKey", None, "Accepted; the signature of a token is always checked."),
        text(_S + "JwtRefreshPath", None, "Refresh path of this scheme alone. null offers none."),
    ),
)
