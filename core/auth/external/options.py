"""What the configuration says about sign-in through outside providers, frozen (external-sign-in-1 to
external-sign-in-11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote

TEMPLATE = (
    '<!DOCTYPE html><html><head><meta charset="utf-8" /><title>Talking To {0}</title></head>'
    "<body>Loading...{1}</body></html>"
)
"""{0}: the provider. {1}: the script."""


UNTYPED = {4: "", 5: "", 6: ""}
"""Values of the command that json, jsonb and text take alike (external-sign-in-6)."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One of them. Addresses that are None come from what the issuer publishes about itself."""

    key: str
    """As it is written in the configuration."""
    path: str
    """Of its page, to which it leads back too."""
    client_id: str
    client_secret: str = field(default="", repr=False)
    auth_url: str | None = None
    """{0}: client id, {1}: return address, {2}: state."""
    token_url: str | None = None
    info_url: str | None = None
    email_url: str | None = None
    issuer: str | None = None
    """Of ID tokens (OpenID Connect). None: plain OAuth 2, where `info_url` says who it is."""
    scope: str = "openid profile email"
    pkce: bool = True
    keeps_tokens: bool = False
    """Those of the provider are kept, sealed, in the browser: for refresh and sign-out."""
    logout_url: str | None = None
    revoke_url: str | None = None
    back_channel: bool = False
    """The issuer tells of logouts there, and sessions here end (OpenID Connect Back-Channel Logout)."""
    unverified_email: bool = False
    """An address that the provider says it has not verified is taken."""

    @property
    def sent_path(self) -> str:
        """`path` as it stands in an address."""
        return quote(self.path, safe="/:@!$&'()*+,;=~")

    @property
    def signs_out(self) -> bool:
        """There is, or may be, something to be told about the end of a session."""
        return bool(self.issuer or self.logout_url or self.revoke_url)


@dataclass(frozen=True, slots=True)
class ExternalOptions:
    """`Auth:External`."""

    providers: tuple[Provider, ...]
    status_key: str = "__external_status"
    message_key: str = "__external_message"
    template: str = TEMPLATE
    redirect_url: str | None = None
    """What stands in front of a provider's path. None: scheme and host of the request."""
    return_to: str = "/"
    return_key: str = "return_to"
    command: str = "select * from external_login($1,$2,$3,$4,$5)"
    logout_command: str = "call external_logout($1,$2,$3)"
    analytics: str | None = None
    """Script expression. None: nothing is collected."""
    ip_key: str = "ip"
    requires_state: bool = False
    """Of every client, and not of browsers only."""
    rate_limiter: str | None = None
