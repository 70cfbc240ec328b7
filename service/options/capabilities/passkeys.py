"""Read `Auth:PasskeyAuth`: options of the passkey endpoints (passkeys-1 to passkeys-3)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from rowcall.core.auth.passkeys import PasskeyColumns, PasskeyCommands, PasskeyOptions, PasskeyPaths
from rowcall.core.auth.schemes import Schemes
from rowcall.core.config import Settings
from rowcall.service.options.server.browsers import as_browsers_write
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "Auth:PasskeyAuth:"
LONGEST_TIMEOUT = 1440
"""Maximum of `ChallengeTimeoutMinutes`."""

_COLUMNS = {
    "status": "Status",
    "message": "Message",
    "challenge": "Challenge",
    "challenge_id": "ChallengeId",
    "user_name": "UserName",
    "display_name": "UserDisplayName",
    "user_handle": "UserHandle",
    "exclude": "ExcludeCredentials",
    "allow": "AllowCredentials",
    "public_key": "PublicKey",
    "algorithm": "PublicKeyAlgorithm",
    "sign_count": "SignCount",
}
_COMMANDS = {
    "challenge_add": "ChallengeAddExistingUserCommand",
    "challenge_register": "ChallengeRegistrationCommand",
    "challenge_login": "ChallengeAuthenticationCommand",
    "verify": "VerifyChallengeCommand",
    "credential": "AuthenticateDataCommand",
    "complete_add": "CompleteAddExistingUserCommand",
    "complete_register": "CompleteRegistrationCommand",
    "complete_login": "CompleteAuthenticateCommand",
}
_PATHS = {
    "add_options": "AddPasskeyOptionsPath",
    "add": "AddPasskeyPath",
    "register_options": "RegistrationOptionsPath",
    "register": "RegistrationPath",
    "login_options": "LoginOptionsPath",
    "login": "LoginPath",
}
_FOR_NEW_USERS = frozenset({"register_options", "register"})


def passkey_options(settings: Settings, schemes: Schemes, connections: Mapping[str, object]) -> PasskeyOptions | None:
    """Return the options, or None if passkeys are disabled. Raises StartupError.

    connections: connections besides the main one, by case-folded name.
    """
    if not settings.flag(_P + "Enabled"):
        return None
    if not schemes:
        log.warning(
            "%sEnabled is true, and no authentication scheme is enabled: sign-in with a passkey needs "
            "Auth:CookieAuth, Auth:BearerTokenAuth or Auth:JwtAuth",
            _P,
        )
    minutes = settings.integer(_P + "ChallengeTimeoutMinutes")
    if minutes > LONGEST_TIMEOUT:
        raise StartupError(f"{_P}ChallengeTimeoutMinutes: the most allowed is {LONGEST_TIMEOUT}")
    relying_party = (settings.text_or_none(_P + "RelyingPartyId") or "").lower() or None
    columns = {name: settings.text_or_none(f"{_P}{key}ColumnName") for name, key in _COLUMNS.items()}
    return PasskeyOptions(
        paths=_paths(settings),
        commands=PasskeyCommands(**{name: settings.text(_P + key) for name, key in _COMMANDS.items()}),
        columns=PasskeyColumns(**{name: text for name, text in columns.items() if text}),
        relying_party=relying_party,
        relying_party_name=settings.text_or_none(_P + "RelyingPartyName")
        or settings.text_or_none("ApplicationName")
        or Path.cwd().name,
        origins=_origins(settings, relying_party),
        timeout=minutes * 60_000,
        user_verification=settings.choice(_P + "UserVerificationRequirement"),
        resident_key=settings.choice(_P + "ResidentKeyRequirement"),
        attestation=settings.choice(_P + "AttestationConveyance"),
        counts=settings.flag(_P + "ValidateSignCount"),
        address_key=settings.text_or_none(_P + "ClientAnalyticsIpKey") or "",
        rate_limiter=settings.text_or_none(_P + "RateLimiterPolicy"),
        connection=_connection(settings, connections),
        retry=settings.text_or_none(_P + "CommandRetryStrategy") or None,
        redis=(settings.text_or_none(_P + "RedisConfiguration") or "").strip() or None,
        issued_only=settings.flag(_P + "IssuedChallengesOnly"),
    )


def _paths(settings: Settings) -> PasskeyPaths:
    paths: dict[str, str] = {}
    keys_by_path: dict[str, str] = {}
    for name, key in _PATHS.items():
        path = settings.text_or_none(_P + key)
        if not path or (name in _FOR_NEW_USERS and not settings.flag(_P + "EnableRegister")):
            continue
        if not path.startswith("/") or any(letter in path for letter in "{}?# "):
            raise StartupError(f"{_P}{key}: {path!r} is no path such as /api/passkey/login")
        other = keys_by_path.setdefault(path.lower(), key)
        if other != key:
            raise StartupError(f"{_P}{other} and {_P}{key} are the same path {path}")
        paths[name] = path
    return PasskeyPaths(**paths)


def _origins(settings: Settings, relying_party: str | None) -> frozenset[str]:
    key = _P + "RelyingPartyOrigins"
    configured = [text.strip() for text in settings.texts(key) or () if text.strip()]
    if not configured:
        log.warning(
            "%s is empty: passkeys are accepted from pages of any host that a request names; list the origins of your "
            "pages, such as https://shop.example",
            key,
        )
    origins = tuple(as_browsers_write(configured, key))
    for origin in origins:
        host = origin.partition("://")[2].partition(":")[0]
        if relying_party is not None and host != relying_party and not host.endswith(f".{relying_party}"):
            log.warning("%s: browsers do not offer passkeys of %s to pages of %s", key, relying_party, origin)
        if origin.startswith("http://") and host != "localhost" and not host.endswith(".localhost"):
            log.warning("%s: browsers do not offer passkeys to %s, which is not https", key, origin)
    return frozenset(origins)


def _connection(settings: Settings, connections: Mapping[str, object]) -> str | None:
    name = settings.text_or_none(_P + "ConnectionName")
    return name.casefold() if name is not None and name.casefold() in connections else None
