"""Keys of sign-in with an identity provider (OAuth 2)."""

from rowcall.core.sections.keys import Key, flag, section, text

_P = "Auth:External:"
_ONE = "Auth:External:<provider>:"

ROWS: tuple[Key, ...] = (
    section("Auth:External", "Sign-in with identity providers (OAuth 2)."),
    flag(_P + "Enabled", False, "Offer sign-in with providers."),
    text(_P + "BrowserSessionStatusKey", "__external_status", "Key of sessionStorage that receives the status."),
    text(_P + "BrowserSessionMessageKey", "__external_message", "Key of sessionStorage that receives the message."),
    text(_P + "SigninUrl", "/signin-{0}", "Path of the sign-in page; {0} is the provider in lower case."),
    text(
        _P + "SignInHtmlTemplate",
        None,
        "Body of the sign-in page: {0} is the provider, {1} the script that continues the sign-in. null: a small page.",
    ),
    text(
        _P + "RedirectUrl",
        None,
        "Scheme and host of the address to which the provider returns; the path of the sign-in page is appended. null: "
        "those of the request.",
    ),
    text(_P + "ReturnToPath", "/", "Path to which the browser is led after the sign-in; always on this service."),
    text(
        _P + "ReturnToPathQueryStringKey",
        "return_to",
        "Query key with which a caller sets another path than ReturnToPath.",
    ),
    flag(
        _P + "RequireState",
        False,
        "Accept a code only with the state of a sign-in that began on the sign-in page, from programs as well as from "
        "browsers. For an OpenID Connect issuer this is always required.",
    ),
    text(_P + "RateLimiterPolicy", None, "Policy that limits the requests of these paths."),
    text(
        _P + "LoginCommand",
        "select * from external_login($1,$2,$3,$4,$5)",
        "Query that signs the user in: $1 provider, $2 e-mail, $3 name, $4 data of the provider, $5 analytics (both "
        "JSON), $6 claims of the caller if already signed in (JSON or NULL). Returns a login row.",
    ),
    text(
        _P + "BackChannelLogoutCommand",
        "call external_logout($1,$2,$3)",
        "SQL that ends sessions after the issuer has ended them: $1 provider, $2 subject (`sub`), $3 session (`sid`); "
        "either of the last two may be NULL.",
    ),
    text(
        _P + "ClientAnalyticsData",
        None,
        "Script expression that the browser evaluates; its JSON is $5 of LoginCommand. If the key is missing, time, "
        "zone, screen, browser and window are collected; null or an empty text collects nothing.",
    ),
    text(_P + "ClientAnalyticsIpKey", "ip", "Key in the analytics JSON that receives the client's address."),
    flag(
        _ONE + "Enabled",
        False,
        "Offer this provider. Addresses of Google, LinkedIn, GitHub, Microsoft and Facebook are built in.",
    ),
    text(_ONE + "ClientId", "", "Client id issued by the provider."),
    text(_ONE + "ClientSecret", "", "Client secret issued by the provider.", secret=True),
    text(
        _ONE + "AuthUrl",
        None,
        "URL to which the browser is sent: {0} client id, {1} return address, {2} state. Built in for known providers.",
    ),
    text(_ONE + "TokenUrl", None, "URL that returns the token. Built in for known providers."),
    text(_ONE + "InfoUrl", None, "URL that returns data of the user. Built in for known providers."),
    text(_ONE + "EmailUrl", None, "URL that returns the e-mail address, if it is a separate one."),
    text(
        _ONE + "Issuer",
        None,
        "OpenID Connect issuer, such as `https://id.example.com`: its metadata contains the other addresses, and its "
        "ID token is requested and verified.",
    ),
    text(_ONE + "Scope", "openid profile email", "Requested scopes, if AuthUrl is not set."),
    flag(_ONE + "Pkce", True, "Bind the code to the browser that requested it (PKCE, S256)."),
    flag(
        _ONE + "AllowUnverifiedEmail",
        False,
        "Accept an e-mail address that the provider has not verified (`email_verified` false).",
    ),
    flag(
        _ONE + "KeepTokens",
        False,
        "Store the provider's refresh and ID token encrypted in a cookie of the browser: for POST to the sign-in path "
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
        "URL to which POST to the sign-in path with `/logout` leads the browser. Issuers have it in their metadata.",
    ),
    text(
        _ONE + "RevokeUrl",
        None,
        "URL that revokes the provider's tokens (RFC 7009). Issuers have it in their metadata.",
    ),
)
