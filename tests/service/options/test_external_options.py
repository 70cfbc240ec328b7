"""`Auth:External` at the start: providers by the field's keys, and what is reported or refused (external-sign-in-1 to
external-sign-in-11)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from rowcall.core.auth.external.options import ExternalOptions
from rowcall.core.auth.external.page import ANALYTICS
from rowcall.core.config import ConfigError
from rowcall.service.command.configuration_files import load_configuration
from rowcall.service.options.auth import auth_options
from rowcall.service.startup_error import StartupError

ON = {"Auth:CookieAuth": "true", "Auth:External:Enabled": "true"}
ACME = {
    "Auth:External:Acme:Enabled": "true",
    "Auth:External:Acme:ClientId": "id",
    "Auth:External:Acme:AuthUrl": "https://acme.example/auth?{0}{1}{2}",
    "Auth:External:Acme:TokenUrl": "https://acme.example/token",
    "Auth:External:Acme:InfoUrl": "https://acme.example/info",
}


def options(**settings: str) -> ExternalOptions | None:
    values = {name.replace("__", ":"): value for name, value in settings.items()}
    loaded = load_configuration((), tuple(values.items()), {}, Path("/"))
    return auth_options(loaded.settings).external


def offered(settings: dict[str, str]) -> ExternalOptions:
    result = options(**settings)
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("name", "host", "scope", "token", "info"),
    [
        ("Google", "accounts.google.com/o/oauth2/v2/auth", "openid profile email", "oauth2.googleapis.com/token",
         "www.googleapis.com/oauth2/v3/userinfo"),
        ("linkedin", "www.linkedin.com/oauth/v2/authorization", "r_liteprofile r_emailaddress",
         "www.linkedin.com/oauth/v2/accessToken", "api.linkedin.com/v2/me"),
        ("GitHub", "github.com/login/oauth/authorize", None, "github.com/login/oauth/access_token",
         "api.github.com/user"),
        ("Microsoft", "login.microsoftonline.com/common/oauth2/v2.0/authorize", "openid profile email",
         "login.microsoftonline.com/common/oauth2/v2.0/token", "graph.microsoft.com/oidc/userinfo"),
        ("Facebook", "www.facebook.com/v20.0/dialog/oauth", "public_profile email",
         "graph.facebook.com/v20.0/oauth/access_token", "graph.facebook.com/me?fields=id,name,email"),
    ],
)  # fmt: skip
def test_known_providers_have_built_in_addresses(
    name: str, host: str, scope: str | None, token: str, info: str
) -> None:
    (provider,) = offered(
        {**ON, f"Auth:External:{name}:Enabled": "true", f"Auth:External:{name}:ClientId": "x"}
    ).providers
    assert provider.key == name
    assert provider.path == f"/signin-{name.lower()}"
    assert (provider.token_url, provider.info_url) == (f"https://{token}", f"https://{info}")
    url = provider.auth_url or ""
    assert url.startswith(f"https://{host}?")
    assert all(place in url for place in ("client_id={0}", "redirect_uri={1}", "state={2}"))
    assert ("response_type=code" in url) is (name != "GitHub")
    assert scope is None or f"scope={scope}" in url
    assert (provider.email_url is not None) is (name == "linkedin")


def test_defaults_and_other_values() -> None:
    result = offered({**ON, **ACME})
    assert (result.status_key, result.message_key) == ("__external_status", "__external_message")
    assert (result.return_to, result.return_key, result.ip_key) == ("/", "return_to", "ip")
    assert result.command == "select * from external_login($1,$2,$3,$4,$5)"
    assert result.analytics == ANALYTICS
    assert (result.redirect_url, result.requires_state, result.rate_limiter) == (None, False, None)
    (provider,) = result.providers
    assert (provider.scope, provider.pkce, provider.keeps_tokens) == ("openid profile email", True, False)
    other = offered(
        {
            **ON,
            **ACME,
            "Auth:External:SigninUrl": "by/{0}/",
            "Auth:External:ReturnToPath": "welcome",
            "Auth:External:RedirectUrl": "https://me.example/",
            "Auth:External:ClientAnalyticsData": "",
            "Auth:External:Acme:Pkce": "false",
        }
    )
    assert (other.redirect_url, other.analytics, other.return_to) == ("https://me.example", None, "/welcome")
    assert (other.providers[0].path, other.providers[0].pkce) == ("/by/acme", False)


def test_an_address_of_a_known_provider_can_be_replaced() -> None:
    url = "https://ghe.example/token"
    (provider,) = offered({**ON, "Auth:External:GitHub:Enabled": "1", "Auth:External:GitHub:TokenUrl": url}).providers
    assert provider.token_url == url
    assert provider.info_url == "https://api.github.com/user"


def test_an_issuer_replaces_the_addresses_of_a_provider() -> None:
    """Also of a known provider."""
    google = {"Auth:External:Google:Enabled": "true", "Auth:External:Google:Issuer": "https://accounts.google.com"}
    (provider,) = offered({**ON, **google}).providers
    assert (provider.auth_url, provider.token_url, provider.info_url) == (None, None, None)


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({**ON}, "no provider below it is enabled"),
        ({**ON, **ACME, "Auth:External:Acme:Enabled": "false"}, "no provider below it is enabled"),
        ({**ON, **ACME, "Auth:CookieAuth": "false"}, "there is nothing to sign in with"),
    ],
)
def test_ineffective_settings_disable_external_sign_in_and_are_reported(
    settings: dict[str, str], reported: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "rowcall"):
        assert options(**settings) is None
    assert reported in caplog.text


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"Auth:External:Acme:ClientId": ""}, "Auth:External:Acme:ClientId is empty"),
        ({"Auth:External:Acme:TokenUrl": "http://acme.example/token"}, "Auth:External:Acme:TokenUrl is http"),
        ({"Auth:External:Acme:AuthUrl": "https://acme.example/auth?id={0}"}, "Acme:AuthUrl has no place for the state"),
        ({"Auth:External:SignInHtmlTemplate": "<p>{0}</p>"}, "SignInHtmlTemplate has no {1}"),
        ({"Auth:External:ReturnToPath": "//elsewhere.example"}, "browsers land at / instead"),
        ({"Auth:External:ReturnToPath": "https://elsewhere.example/"}, "browsers land at / instead"),
    ],
)
def test_doubtful_settings_are_reported(
    changes: dict[str, str], reported: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "rowcall"):
        offered({**ON, **ACME, **changes})
    assert reported in caplog.text


def test_a_loopback_address_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "rowcall"):
        offered({**ON, **ACME, "Auth:External:Acme:TokenUrl": "http://localhost:8080/token"})
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"Auth:External:Acme:InfoUrl": ""}, "Auth:External:Acme:InfoUrl is missing"),
        ({"Auth:External:Acme:AuthUrl": ""}, "Auth:External:Acme:AuthUrl is missing"),
        ({"Auth:External:Acme:TokenUrl": "acme.example/token"}, "Auth:External:Acme:TokenUrl: the URL is not absolute"),
        ({"Auth:External:Acme:InfoUrl": "ftp://acme.example"}, "neither http nor https"),
        ({"Auth:External:Acme:Issuer": "acme"}, "Auth:External:Acme:Issuer"),
        ({"Auth:External:RedirectUrl": "me.example"}, "Auth:External:RedirectUrl"),
        ({"Auth:External:SigninUrl": "/in", "Auth:External:Google:Enabled": "true"}, "share the path /in"),
        ({"Auth:External:LoginCommand:0": "x"}, "Auth:External:LoginCommand: a single value is needed here"),
    ],
)
def test_invalid_settings_of_providers_stop_the_start(changes: dict[str, str], reported: str) -> None:
    with pytest.raises((StartupError, ConfigError)) as raised:
        options(**{**ON, **ACME, **changes})
    assert reported in str(raised.value)


def test_disabled_providers_are_not_validated() -> None:
    broken = {"Auth:External:Acme:Enabled": "true", "Auth:External:Acme:AuthUrl": "nonsense"}
    assert options(**{**ON, **broken, "Auth:External:Enabled": "false"}) is None


def test_secrets_are_not_part_of_the_representation() -> None:
    result = offered({**ON, **ACME, "Auth:External:Acme:ClientSecret": "geheim"})
    assert result.providers[0].client_secret == "geheim"
    assert "geheim" not in repr(result)
