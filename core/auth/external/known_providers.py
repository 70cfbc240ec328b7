"""Providers that are known by name: their URLs, unless the configuration sets others (external-sign-in-1)."""

from __future__ import annotations

from typing import NamedTuple

_CODE = "response_type=code&client_id={0}&redirect_uri={1}"
_MICROSOFT = "https://login.microsoftonline.com/common/oauth2/v2.0"


class KnownProvider(NamedTuple):
    auth_url: str
    token_url: str
    info_url: str
    email_url: str | None = None


KNOWN_PROVIDERS: dict[str, KnownProvider] = {
    "google": KnownProvider(
        f"https://accounts.google.com/o/oauth2/v2/auth?{_CODE}&scope=openid profile email&state={{2}}",
        "https://oauth2.googleapis.com/token",
        "https://www.googleapis.com/oauth2/v3/userinfo",
    ),
    "linkedin": KnownProvider(
        f"https://www.linkedin.com/oauth/v2/authorization?{_CODE}&state={{2}}&scope=r_liteprofile r_emailaddress",
        "https://www.linkedin.com/oauth/v2/accessToken",
        "https://api.linkedin.com/v2/me",
        "https://api.linkedin.com/v2/emailAddress?q=members&projection=(elements//(handle~))",
    ),
    "github": KnownProvider(
        "https://github.com/login/oauth/authorize?client_id={0}&redirect_uri={1}&state={2}&allow_signup=false",
        "https://github.com/login/oauth/access_token",
        "https://api.github.com/user",
    ),
    "microsoft": KnownProvider(
        f"{_MICROSOFT}/authorize?{_CODE}&scope=openid profile email&state={{2}}",
        f"{_MICROSOFT}/token",
        "https://graph.microsoft.com/oidc/userinfo",
    ),
    "facebook": KnownProvider(
        f"https://www.facebook.com/v20.0/dialog/oauth?{_CODE}&scope=public_profile email&state={{2}}",
        "https://graph.facebook.com/v20.0/oauth/access_token",
        "https://graph.facebook.com/me?fields=id,name,email",
    ),
}
"""By name in lower case."""
