"""Keys of sign-in with an identity provider (OAuth 2)."""

from rowcall.core.config.keys import Key, flag, section, text

_P = "Auth:External:"
_ONE = "Auth:External:<provider>:"

ROWS: tuple[Key, ...] = (
    section("Auth:External", "Sign-in through outside providers (OAuth 2)."),
    flag(_P + "Enabled", False, "Offer it."),
    text(_P + "BrowserSessionStatusKey", "__external_status", "Key of sessionStorage that receives the status."),
    text(_P + "BrowserSessionMessageKey", "__external_message", "Key of sessionStorage that receives the message."),
    text(_P + "SigninUrl", "/signin-{0}", "Path of the sign-in page; {0} is the provider in lower case."),
    text(
        _P + "SignInHtmlTemplate",
        None,
        "Body of that page: {0} is the provider, {1} the script that goes on. null shows a small page.",
    ),
    text(
        _P + "RedirectUrl",
        None,
        "Scheme and host of the address that the provider returns to; the path of the page follows. null takes those "
        "of the request.",
    ),
    text(_P + "ReturnToPath", "/", "Where the browser lands in the end; always on this service."),
    text(_P + "ReturnToPathQueryStringKey", "return_to", "Query key by which a caller asks for another landing path."),
    flag(
        _P + "RequireState",
        False,
        "Take a code only with the state of a sign-in that has begun on the page, from programs as well as from "
        "browsers. Of an OpenID Connect issuer that is always so.",
    ),
    text(_P + "RateLimiterPolicy", None, "Policy that limits the requests of these paths."),
    text(
        _P + "LoginCommand",
        "select * from external_login($1,$2,$3,$4,$5)",
        "Query that signs the user in: $1 provider, $2 e-mail, $3 name, $4 what the provider said, $5 analytics "
        "(both JSON), $6 the claims of who is signed in already (JSON or NULL). Its row is a login row.",
    ),
    text(
        _P + "BackChannelLogoutCommand",
        "call external_logout($1,$2,$3)",
        "SQL that ends sessions, as an issuer says that they have ended there: $1 provider, $2 the subject (`sub`), $3 "
        "the session (`sid`); one of these may be NULL.",
    ),
    text(
        _P + "ClientAnalyticsData",
        None,
        "Script expression evaluated in the browser; its JSON arrives as $5. Without this key it collects time, zone, "
        "screen, browser and window; null or an empty text collects nothing.",
    ),
    text(_P + "ClientAnalyticsIpKey", "ip", "Key of that JSON under which the client's address is added."),
    flag(_ONE + "Enabled", False, "Offer this provider. Google, LinkedIn, GitHub, Microsoft and Facebook are known."),
    text(_ONE + "ClientId", "", "Client id that the provider has given."),
    text(_ONE + "ClientSecret", "", "Client secret that the provider has given.", secret=True),
    text(
        _ONE + "AuthUrl",
        None,
        "Address to send the browser to: {0} client id, {1} return address, {2} state. Known providers have one.",
    ),
    text(_ONE + "TokenUrl", None, "Address that gives the token. Known providers have one."),
    text(_ONE + "InfoUrl", None, "Address that tells about the user. Known providers have one."),
    text(_ONE + "EmailUrl", None, "Address that tells the e-mail, where it is a separate one."),
    text(
        _ONE + "Issuer",
        None,
        "Issuer of OpenID Connect, such as `https://id.example.com`: its other addresses are found there, and its ID "
        "token is asked for and verified.",
    ),
    text(_ONE + "Scope", "openid profile email", "Scopes that are asked for, where AuthUrl is not given."),
    flag(_ONE + "Pkce", True, "Bind the code to the browser that asked for it (PKCE, S256)."),
    flag(
        _ONE + "AllowUnverifiedEmail",
        False,
        "Take an e-mail address that the provider says it has not verified (`email_verified` false).",
    ),
    flag(
        _ONE + "KeepTokens",
        False,
        "Keep the provider's refresh and ID token, sealed, in a cookie of the browser: for POST to the sign-in path "
        "with `/refresh`, and for sign-out.",
    ),
    flag(
        _ONE + "BackChannelLogout",
        False,
        "Let the issuer end sessions: it sends logout tokens to POST of the sign-in path with `/backchannel-logout`.",
    ),
    text(
        _ONE + "LogoutUrl",
        None,
        "Address to which POST to the sign-in path with `/logout` leads the browser. An issuer tells its own.",
    ),
    text(_ONE + "RevokeUrl", None, "Address that ends the provider's tokens (RFC 7009). An issuer tells its own."),
)
