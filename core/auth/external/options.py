"""Options of sign-in through external providers, frozen (external-sign-in-1 to external-sign-in-11)."""

from __future__ import annotations

from urllib.parse import quote

from rowcall.core.sections.declaration import flag, part, section, text
from rowcall.core.sections.values import or_empty, strip_or_empty, stripped_or_none

TEMPLATE = (
    '<!DOCTYPE html><html><head><meta charset="utf-8" /><title>Talking To {0}</title></head>'
    "<body>Loading...{1}</body></html>"
)
"""{0}: the provider. {1}: the script."""


UNTYPED = {4: "", 5: "", 6: ""}
"""Parameters of LoginCommand whose type PostgreSQL infers, so that they may be json, jsonb or text
(external-sign-in-6)."""


def _template(text: str | None) -> str:
    """Return `TEMPLATE` for None and an empty text."""
    return text or TEMPLATE


@section("Auth:External:<provider>")
class Provider:
    """One external provider. If it has an issuer, URLs that are None are taken from its discovery document, except
    `email_url`. Without an issuer, None means that there is no such endpoint.
    """

    key: str
    """As written in the configuration."""
    path: str
    """Path of its page, which is also the OAuth callback."""

    enabled = flag(
        "Enabled",
        False,
        "Offer this provider. Addresses of Google, LinkedIn, GitHub, Microsoft and Facebook are built in.",
    )
    client_id: str = text("ClientId", "", "Client id issued by the provider.", convert=strip_or_empty)
    client_secret: str = text("ClientSecret", "", "Client secret issued by the provider.", secret=True)
    auth_url: str | None = text(
        "AuthUrl",
        None,
        "URL to which the browser is sent: {0} client id, {1} return address, {2} state. Built in for known providers.",
        convert=stripped_or_none,
    )
    token_url: str | None = text(
        "TokenUrl", None, "URL that returns the token. Built in for known providers.", convert=stripped_or_none
    )
    info_url: str | None = text(
        "InfoUrl", None, "URL that returns data of the user. Built in for known providers.", convert=stripped_or_none
    )
    email_url: str | None = text(
        "EmailUrl", None, "URL that returns the e-mail address, if it is a separate one.", convert=stripped_or_none
    )
    issuer: str | None = text(
        "Issuer",
        None,
        "OpenID Connect issuer, such as `https://id.example.com`: its metadata contains the other addresses, and "
        "its ID token is requested and verified.",
        convert=stripped_or_none,
    )
    scope: str = text("Scope", "openid profile email", "Requested scopes, if AuthUrl is not set.")
    pkce: bool = flag("Pkce", True, "Bind the code to the browser that requested it (PKCE, S256).")
    unverified_email: bool = flag(
        "AllowUnverifiedEmail",
        False,
        "Accept an e-mail address that the provider has not verified (`email_verified` false).",
    )
    keeps_tokens: bool = flag(
        "KeepTokens",
        False,
        "Store the provider's refresh and ID token encrypted in a cookie of the browser: for POST to the sign-in "
        "path with `/refresh`, and for sign-out.",
    )
    back_channel: bool = flag(
        "BackChannelLogout",
        False,
        "Let the issuer end sessions: it sends logout tokens to POST of the sign-in path with `/backchannel-logout`.",
    )
    logout_url: str | None = text(
        "LogoutUrl",
        None,
        "URL to which POST to the sign-in path with `/logout` leads the browser. Issuers have it in their metadata.",
        convert=stripped_or_none,
    )
    revoke_url: str | None = text(
        "RevokeUrl",
        None,
        "URL that revokes the provider's tokens (RFC 7009). Issuers have it in their metadata.",
        convert=stripped_or_none,
    )

    @property
    def sent_path(self) -> str:
        """`path`, percent-encoded for a URL."""
        return quote(self.path, safe="/:@!$&'()*+,;=~")

    @property
    def signs_out(self) -> bool:
        """Whether the provider has, or may have, an endpoint for the end of a session."""
        return bool(self.issuer or self.logout_url or self.revoke_url)


@section("Auth:External", "Sign-in with identity providers (OAuth 2).")
class ExternalOptions:
    """Options of the section `Auth:External`."""

    providers: tuple[Provider, ...]

    enabled: bool = flag("Enabled", False, "Offer sign-in with providers.")
    status_key: str = text(
        "BrowserSessionStatusKey", "__external_status", "Key of sessionStorage that receives the status."
    )
    message_key: str = text(
        "BrowserSessionMessageKey", "__external_message", "Key of sessionStorage that receives the message."
    )
    signin_url: str = text("SigninUrl", "/signin-{0}", "Path of the sign-in page; {0} is the provider in lower case.")
    template: str = text(
        "SignInHtmlTemplate",
        None,
        "Body of the sign-in page: {0} is the provider, {1} the script that continues the sign-in. null: a small page.",
        convert=_template,
    )
    redirect_url: str | None = text(
        "RedirectUrl",
        None,
        "Scheme and host of the address to which the provider returns; the path of the sign-in page is appended. "
        "null: those of the request.",
    )
    return_to: str = text(
        "ReturnToPath", "/", "Path to which the browser is led after the sign-in; always on this service."
    )
    return_key: str = text(
        "ReturnToPathQueryStringKey", "return_to", "Query key with which a caller sets another path than ReturnToPath."
    )
    requires_state: bool = flag(
        "RequireState",
        False,
        "Accept a code only with the state of a sign-in that began on the sign-in page, from programs as well as "
        "from browsers. For an OpenID Connect issuer this is always required.",
    )
    rate_limiter: str | None = text("RateLimiterPolicy", None, "Policy that limits the requests of these paths.")
    command: str = text(
        "LoginCommand",
        "select * from external_login($1,$2,$3,$4,$5)",
        "Query that signs the user in: $1 provider, $2 e-mail, $3 name, $4 data of the provider, $5 analytics "
        "(both JSON), $6 claims of the caller if already signed in (JSON or NULL). Returns a login row.",
    )
    logout_command: str = text(
        "BackChannelLogoutCommand",
        "call external_logout($1,$2,$3)",
        "SQL that ends sessions after the issuer has ended them: $1 provider, $2 subject (`sub`), $3 session "
        "(`sid`); either of the last two may be NULL.",
    )
    analytics: str | None = text(
        "ClientAnalyticsData",
        None,
        "Script expression that the browser evaluates; its JSON is $5 of LoginCommand. If the key is missing, "
        "time, zone, screen, browser and window are collected; null or an empty text collects nothing.",
    )
    ip_key: str = text(
        "ClientAnalyticsIpKey",
        "ip",
        "Key in the analytics JSON that receives the client's address.",
        empty=True,
        convert=or_empty,
    )
    provider = part(Provider)
