"""What the start says about passkeys that cannot work (sign-in-5, passkeys-1 to passkeys-3)."""

from __future__ import annotations

import logging

import pytest

from rowcall.core.auth.passkeys import PasskeyOptions
from rowcall.core.auth.schemes import CookieScheme, Schemes
from rowcall.core.config import ConfigError, Settings, assemble, load_files
from rowcall.service.options.capabilities.passkeys import passkey_options
from rowcall.service.options.connections import connection_plan
from rowcall.service.startup_error import StartupError

P = "Auth:PasskeyAuth:"
ON = (P + "Enabled", "true")
COOKIES = Schemes(cookies=(CookieScheme(name="Cookies", cookie="yard", valid=60),), default="Cookies")


def settings(*overrides: tuple[str, str]) -> Settings:
    return assemble(load_files([]), [ON, *overrides], {}).settings


def options(*overrides: tuple[str, str], schemes: Schemes = COOKIES) -> PasskeyOptions:
    result = passkey_options(settings(*overrides), schemes, {})
    assert result is not None
    return result


def test_passkeys_are_off_by_default() -> None:
    assert passkey_options(assemble(load_files([]), [], {}).settings, COOKIES, {}) is None


def test_registration_is_enabled_separately() -> None:
    assert options().paths.register is None
    paths = options((P + "EnableRegister", "true"), (P + "AddPasskeyPath", "")).paths
    assert (paths.register, paths.add, paths.login) == ("/api/passkey/register", None, "/api/passkey/login")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("LoginPath", "login"),
        ("LoginPath", "/login/{name}"),
        ("LoginPath", "/API/passkey/add"),
        ("ChallengeTimeoutMinutes", "0"),
        ("ChallengeTimeoutMinutes", "1441"),
        ("RelyingPartyOrigins:0", "shop.example"),
        ("UserVerificationRequirement", "always"),
        ("ResidentKeyRequirement", "sometimes"),
        ("AttestationConveyance", "some"),
    ],
)
def test_invalid_passkey_settings_end_the_start(key: str, value: str) -> None:
    with pytest.raises((StartupError, ConfigError), match=key.partition(":")[0]):
        options((P + key, value))


def test_an_unknown_connection_of_passkeys_ends_the_start() -> None:
    named = (("ConnectionStrings:Default", "Host=x"), (P + "ConnectionName", "keys"))
    with pytest.raises(
        (ConfigError, StartupError), match="ConnectionName names 'keys', but ConnectionStrings has Default"
    ):
        connection_plan(settings(*named))


def warnings_of(caplog: pytest.LogCaptureFixture, *overrides: tuple[str, str], schemes: Schemes = COOKIES) -> str:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "rowcall"):
        options(*overrides, schemes=schemes)
    return "\n".join(record.getMessage() for record in caplog.records)


def test_doubtful_passkey_settings_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    origin = (P + "RelyingPartyOrigins:0", "https://www.shop.example:8443/")
    assert "RelyingPartyOrigins is empty" in warnings_of(caplog)
    assert warnings_of(caplog, origin, (P + "RelyingPartyId", "shop.example")) == ""
    assert "browsers do not offer passkeys of other.example" in warnings_of(
        caplog, origin, (P + "RelyingPartyId", "other.example")
    )
    assert "not https" in warnings_of(caplog, (P + "RelyingPartyOrigins:0", "http://shop.example"))
    assert warnings_of(caplog, (P + "RelyingPartyOrigins:0", "http://localhost:8080")) == ""
    assert "sign-in with a passkey needs" in warnings_of(caplog, origin, schemes=Schemes())
