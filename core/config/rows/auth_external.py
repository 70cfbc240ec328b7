"""Sign-in through an outside provider (OAuth 2)."""

from rowcall.core.config.keys import Key, flag, pending, section, text

_P = "Auth:External:"
_ONE = "Auth:External:<provider>:"

ROWS: tuple[Key, ...] = pending(
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
    text(_P + "RedirectUrl", None, "Address the provider returns to. null works it out from the request."),
    text(_P + "ReturnToPath", "/", "Where the browser lands in the end."),
    text(_P + "ReturnToPathQueryStringKey", "return_to", "Query key by which a caller asks for another landing path."),
    text(
        _P + "LoginCommand",
        "select * from external_login($1,$2,$3,$4,$5)",
        "Query that signs the user in: $1 provider, $2 e-mail, $3 name, $4 what the provider said, $5 analytics "
        "(both JSON). Its row is a login row.",
    ),
    text(
        _P + "ClientAnalyticsData",
        None,
        "Script expression evaluated in the browser; its JSON arrives as $5. null "
        "collects time, zone, screen, browser and window.",
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
)
