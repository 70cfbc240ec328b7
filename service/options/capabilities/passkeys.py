"""Read `Auth:PasskeyAuth`: options of the passkey endpoints (passkeys-1 to passkeys-3)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rowcall.core.auth.passkeys import PasskeyOptions, PasskeyPaths
from rowcall.core.auth.schemes import Schemes
from rowcall.core.config import Settings
from rowcall.service.options.application_name import application_name
from rowcall.service.options.server.browsers import serialized_origins
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "Auth:PasskeyAuth:"
_PATHS = {
    "add_options": "AddPasskeyOptionsPath",
    "add": "AddPasskeyPath",
    "register_options": "RegistrationOptionsPath",
    "register": "RegistrationPath",
    "login_options": "LoginOptionsPath",
    "login": "LoginPath",
}


def passkey_options(settings: Settings, schemes: Schemes, connections: Mapping[str, object]) -> PasskeyOptions | None:
    """Return the options, or None if passkeys are disabled. Raises StartupError if two paths are the same or an origin
    is invalid.

    connections: connections besides the main one, by case-folded name. A connection that is not among them is replaced
    by the main one.
    """
    options = settings.read_enabled(PasskeyOptions)
    if options is None:
        return None
    if not schemes.signs_in:
        log.warning(
            "%sEnabled is true, and no authentication scheme is enabled: sign-in with a passkey needs "
            "Auth:CookieAuth, Auth:BearerTokenAuth or Auth:JwtAuth",
            _P,
        )
    connection = (options.connection or "").casefold()
    return replace(
        options,
        paths=_paths(options.paths, registers=settings.is_enabled(PasskeyPaths)),
        connection=connection if connection in connections else None,
        relying_party_name=options.relying_party_name or application_name(settings),
        origins=_origins(options.origins, options.relying_party),
    )


def _paths(paths: PasskeyPaths, *, registers: bool) -> PasskeyPaths:
    if not registers:
        paths = replace(paths, register=None, register_options=None)
    keys_by_path: dict[str, str] = {}
    for name, key in _PATHS.items():
        path = getattr(paths, name)
        other = key if path is None else keys_by_path.setdefault(path.lower(), key)
        if other != key:
            raise StartupError(f"{_P}{other} and {_P}{key} are the same path {path}")
    return paths


def _origins(texts: Iterable[str], relying_party: str | None) -> frozenset[str]:
    key = _P + "RelyingPartyOrigins"
    configured = [text.strip() for text in sorted(texts) if text.strip()]
    if not configured:
        log.warning(
            "%s is empty: passkeys are accepted from pages of any host that a request names; list the origins of your "
            "pages, such as https://shop.example",
            key,
        )
    origins = tuple(serialized_origins(configured, key))
    for origin in origins:
        host = origin.partition("://")[2].partition(":")[0]
        if relying_party is not None and host != relying_party and not host.endswith(f".{relying_party}"):
            log.warning("%s: browsers do not offer passkeys of %s to pages of %s", key, relying_party, origin)
        if origin.startswith("http://") and host != "localhost" and not host.endswith(".localhost"):
            log.warning("%s: browsers do not offer passkeys to %s, which is not https", key, origin)
    return frozenset(origins)
