"""What is configured about signing in and cannot work, or does not do what it says: each is reported with its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall.core.config import assemble, checks, load_files
from rowcall.core.sections.errors import ConfigError
from rowcall.service.options.auth import auth_options
from rowcall.service.options.capabilities.static_files import static_file_options
from rowcall.service.options.sign_in.warnings import configuration_warnings
from rowcall.service.startup_error import StartupError
from tests.http.members import SECRET

COOKIES = {"Auth:CookieAuth": "true"}
TOKENS = {"Auth:BearerTokenAuth": "true"}
JWT = {"Auth:JwtAuth": "true", "Auth:JwtSecret": SECRET}
KEYS = {"Auth:ApiKey:Enabled": "true"}
GITHUB = {f"Auth:External:{key}": "true" for key in ("Enabled", "GitHub:Enabled", "GitHub:ClientId")}
SECOND = "Auth:SecondFactor:"
OPTIONS = "Service:AuthenticationOptions:"
BASIC = {OPTIONS + "BasicAuth:Enabled": "true", OPTIONS + "BasicAuth:SslRequirement": "Ignore"}


def look(settings: dict[str, str], caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the start says."""
    loaded = assemble(load_files([]), tuple(settings.items()), {}).settings
    auth, static = auth_options(loaded), static_file_options(loaded)
    return [*caplog.messages, *configuration_warnings(loaded, auth, static)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({**COOKIES, "Auth:CookieValid": "0"}, "Auth:CookieValid: .* at least one second"),
        ({**TOKENS, "Auth:BearerTokenExpire": "0 seconds"}, "Auth:BearerTokenExpire: .* at least one second"),
        ({**JWT, "Auth:JwtExpire": "0"}, "Auth:JwtExpire: .* at least one second"),
        ({**JWT, "Auth:JwtRefreshExpire": "0"}, "Auth:JwtRefreshExpire: .* at least one second"),
        (
            {**COOKIES, "Auth:Schemes:a:Type": "BearerToken", "Auth:Schemes:a:BearerTokenExpire": "0"},
            "Auth:Schemes:a:BearerTokenExpire: .* at least one second",
        ),
        (
            {**JWT, "Auth:Schemes:a:Type": "Jwt", "Auth:Schemes:a:JwtClockSkew": "a while"},
            "Auth:Schemes:a:JwtClockSkew: 'a while' is not",
        ),
        (
            {**COOKIES, **TOKENS, "Auth:CookieAuthScheme": "one", "Auth:BearerTokenAuthScheme": "one"},
            "two of the main schemes have the name one",
        ),
        ({OPTIONS + "StatusColumnName": "Body"}, "cannot mean two things"),
        ({SECOND + "Enabled": "true"}, "Auth:SecondFactor:Enabled needs a scheme to sign in with"),
        (
            {**KEYS, SECOND + "Enabled": "true"},
            "Auth:SecondFactor:Enabled needs a scheme to sign in with",
        ),
        (
            {**COOKIES, SECOND + "Enabled": "true", SECOND + "Path": "second"},
            "Auth:SecondFactor:Path: 'second' is no path",
        ),
        ({**COOKIES, SECOND + "Enabled": "true", SECOND + "DeviceCookie": "a b"}, "SecondFactor:DeviceCookie"),
        (
            {"StaticFiles:Enabled": "true", "StaticFiles:AuthorizePaths:0": "admin/*"},
            "StaticFiles:AuthorizePaths: 'admin/\\*' matches no path: .* such as /admin/\\*",
        ),
    ],
)
def test_invalid_signing_settings_stop_the_start(
    settings: dict[str, str], message: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises((ConfigError, StartupError), match=message):
        look({"StaticFiles:RootPath": str(tmp_path), **settings}, caplog)


@pytest.mark.parametrize(
    ("text", "seconds", "warns"), [("30 seconds", 30, False), ("", 300, False), ("a while", 300, True)]
)
def test_an_invalid_clock_skew_of_the_main_scheme_is_the_default(text: str, seconds: float, warns: bool) -> None:
    loaded = assemble(load_files([]), tuple({**JWT, "Auth:JwtClockSkew": text}.items()), {}).settings
    (scheme,) = auth_options(loaded).schemes.jwts
    assert scheme.clock_skew == seconds
    assert any("Auth:JwtClockSkew" in message for message in checks.configuration_warnings(loaded)) == warns


@pytest.mark.parametrize(
    ("settings", "messages"),
    [
        (COOKIES, []),
        ({**COOKIES, "Auth:CookieName": "__Secure-a"}, ["Auth:CookieName is __Secure-a: browsers drop the cookie"]),
        ({**COOKIES, "Auth:CookieName": "__Host-a", "Auth:CookieSecure": "Always"}, []),
        (
            {
                **COOKIES,
                "Auth:Schemes:b:Type": "Cookies",
                "Auth:Schemes:b:CookieName": "__host-b",
                "Auth:Schemes:b:CookieDomain": "shop.example",
                "Auth:Schemes:b:CookiePath": "/api",
            },
            [
                "Auth:Schemes:b:CookieName is __host-b: browsers drop the cookie unless CookieSecure is Always",
                "Auth:Schemes:b:CookieName is __host-b: browsers drop the cookie unless CookieDomain is null",
                "Auth:Schemes:b:CookieName is __host-b: browsers drop the cookie unless CookiePath is /",
            ],
        ),
        ({"Auth:Schemes:b:Type": "Cookies"}, ["Auth:Schemes:b is not offered"]),
        (
            {**KEYS, **GITHUB},
            ["Auth:External:Enabled is true, and Auth:CookieAuth, Auth:BearerTokenAuth and Auth:JwtAuth"],
        ),
        ({"Auth:Schemes:b:Type": "Cookies", "Auth:Schemes:b:Enabled": "false"}, []),
        ({**JWT, "Auth:JwtValidateLifetime": "false"}, ["Auth:JwtValidateLifetime is false: tokens of the scheme"]),
        (
            {**JWT, "Auth:Schemes:b:Type": "Jwt", "Auth:Schemes:b:JwtValidateLifetime": "false"},
            ["Auth:Schemes:b:JwtValidateLifetime is false: tokens of the scheme b"],
        ),
        (BASIC, [OPTIONS + "BasicAuth:Enabled is true, and neither"]),
        ({**BASIC, OPTIONS + "BasicAuth:ChallengeCommand": "select $1 as user_name"}, []),
        (
            {
                **BASIC,
                OPTIONS + "BasicAuth:SslRequirement": "Warning",
                OPTIONS + "BasicAuth:Users:kiri": "sesame",
            },
            [OPTIONS + "BasicAuth:Enabled is true and", OPTIONS + "BasicAuth:Users:kiri is no hash"],
        ),
        (
            {
                **BASIC,
                OPTIONS + "BasicAuth:UseDefaultPasswordHasher": "false",
                OPTIONS + "BasicAuth:Users:kiri": "sesame",
            },
            [],
        ),
        (
            {
                OPTIONS + "ContextKeyClaimsMapping:user": "user_id",
                OPTIONS + "ClaimsJsonContextKey": "the claims",
            },
            [
                OPTIONS + "ContextKeyClaimsMapping: user is no name",
                OPTIONS + "ClaimsJsonContextKey: the claims",
            ],
        ),
        (
            {
                OPTIONS + "DefaultUserIdClaimType": "sub",
                OPTIONS + "ContextKeyClaimsMapping:request.user_id": "sub",
            },
            [OPTIONS + "DefaultUserIdClaimType is sub, and _user_id is still filled from user_id"],
        ),
        (
            {
                "HealthChecks:Enabled": "true",
                "HealthChecks:RequireAuthorization": "true",
                "Stats:Enabled": "true",
                "Stats:AuthorizedRoles:0": "boss",
                "StaticFiles:Enabled": "true",
                "StaticFiles:AuthorizePaths:0": "*",
            },
            [
                "HealthChecks:RequireAuthorization: no user has access",
                "Stats:AuthorizedRoles: no user has access",
                "StaticFiles:AuthorizePaths: no user has access",
            ],
        ),
        (
            {**COOKIES, "StaticFiles:Enabled": "true", "StaticFiles:AuthorizePaths:0": "/admin"},
            [
                "StaticFiles:AuthorizePaths: /admin is a folder, and its files can be read without sign-in: "
                "write /admin/*"
            ],
        ),
        ({**COOKIES, "StaticFiles:Enabled": "true", "StaticFiles:AuthorizePaths:0": "/elsewhere"}, []),
    ],
)
def test_settings_without_effect_are_reported(
    settings: dict[str, str], messages: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "admin").mkdir()
    message = look({"StaticFiles:RootPath": str(tmp_path), **settings}, caplog)
    assert len(message) == len(messages), message
    for result, expected in zip(message, messages, strict=True):
        assert result.startswith(expected)
