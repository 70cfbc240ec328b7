"""Options of sign-in through external providers, frozen (external-sign-in-1 to external-sign-in-11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote

TEMPLATE = (
    '<!DOCTYPE html><html><head><meta charset="utf-8" /><title>Talking To {0}</title></head>'
    "<body>Loading...{1}</body></html>"
)
"""{0}: the provider. {1}: the script."""


UNTYPED = {4: "", 5: "", 6: ""}
"""Types of the command's parameters that json, jsonb and text accept alike (external-sign-in-6)."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One external provider. URLs that are None are taken from the issuer's discovery document."""

    key: str
    """As written in the configuration."""
    path: str
    """Path of its page, which is also the OAuth callback."""
    client_id: str
    client_secret: str = field(default="", repr=False)
    auth_url: str | None = None
    """{0}: client id, {1}: redirect URI, {2}: state."""
    token_url: str | None = None
    info_url: str | None = None
    email_url: str | None = None
    issuer: str | None = None
    """Issuer of ID tokens (OpenID Connect). None: plain OAuth 2, where `info_url` identifies the user."""
    scope: str = "openid profile email"
    pkce: bool = True
    keeps_tokens: bool = False
    """The provider's tokens are stored, sealed, in the browser: for refresh and sign-out."""
    logout_url: str | None = None
    revoke_url: str | None = None
    back_channel: bool = False
    """The issuer reports logouts, and sessions here end (OpenID Connect Back-Channel Logout)."""
    unverified_email: bool = False
    """Whether an e-mail address is accepted that the provider has not verified."""

    @property
    def sent_path(self) -> str:
        """`path`, percent-encoded for a URL."""
        return quote(self.path, safe="/:@!$&'()*+,;=~")

    @property
    def signs_out(self) -> bool:
        """Whether the provider has, or may have, an endpoint for the end of a session."""
        return bool(self.issuer or self.logout_url or self.revoke_url)


@dataclass(frozen=True, slots=True)
class ExternalOptions:
    """Options of the section `Auth:External`."""

    providers: tuple[Provider, ...]
    status_key: str = "__external_status"
    message_key: str = "__external_message"
    template: str = TEMPLATE
    redirect_url: str | None = None
    """Prefix of a provider's path in the redirect URI. None: scheme and host of the request."""
    return_to: str = "/"
    return_key: str = "return_to"
    command: str = "select * from external_login($1,$2,$3,$4,$5)"
    logout_command: str = "call external_logout($1,$2,$3)"
    analytics: str | None = None
    """JavaScript expression. None: no analytics are collected."""
    ip_key: str = "ip"
    requires_state: bool = False
    """Whether all clients need a state, not only browsers."""
    rate_limiter: str | None = None
