"""Read `Auth:External`: sign-in with identity providers (external-sign-in-1 to external-sign-in-11)."""

from __future__ import annotations

import logging
from dataclasses import replace
from urllib.parse import urlsplit

from rowcall.core.auth.external.known_providers import KNOWN_PROVIDERS
from rowcall.core.auth.external.options import ExternalOptions, Provider
from rowcall.core.auth.external.page import ANALYTICS
from rowcall.core.auth.options import SessionCheck
from rowcall.core.config import Settings
from rowcall.core.outgoing.address import BadUrlError, read_address
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "Auth:External:"
_LOCAL = ("localhost", "127.0.0.1", "::1")
_NEEDED = {"AuthUrl": "auth_url", "TokenUrl": "token_url", "InfoUrl": "info_url"}
_ADDRESSES = {
    **_NEEDED,
    "EmailUrl": "email_url",
    "Issuer": "issuer",
    "LogoutUrl": "logout_url",
    "RevokeUrl": "revoke_url",
}
"""Keys of addresses and their fields."""


def external_options(settings: Settings, *, offered: bool) -> ExternalOptions | None:
    """Return the options, or None if sign-in with providers is off or no provider is enabled.

    offered: an authentication scheme is enabled; without one, no sign-in is possible, and None is returned.

    Raises:
        StartupError: a provider lacks an address that it needs (for back-channel logout, the Issuer), an address or
            `RedirectUrl` is invalid, or two providers share their path.
    """
    options = settings.read_enabled(ExternalOptions, providers=())
    if options is None:
        return None
    names = (name for name in settings.names_of(Provider) if settings.is_enabled(Provider, name))
    providers = tuple(_provider(settings, name, options.signin_url) for name in names)
    if not providers:
        log.warning("%sEnabled is true, and no provider below it is enabled: nothing is offered", _P)
        return None
    if not offered:
        log.warning(
            "%sEnabled is true, and Auth:CookieAuth, Auth:BearerTokenAuth and Auth:JwtAuth are off: there is nothing "
            "to sign in with, so nothing is offered",
            _P,
        )
        return None
    _check_paths(providers)
    for provider in providers:
        log.info("%s%s: sign-in at %s", _P, provider.key, provider.path)
    options = replace(
        options,
        providers=providers,
        redirect_url=_origin(options.redirect_url or ""),
        return_to=_return_to(options.return_to.strip()),
        analytics=(options.analytics or "").strip() or None
        if settings.is_set(ExternalOptions, "analytics")
        else ANALYTICS,
    )
    if "{1}" not in options.template:
        log.warning(
            "%sSignInHtmlTemplate has no {1}: without its script the page does not lead browsers to the provider", _P
        )
    return options


def _return_to(text: str) -> str:
    if "://" in text or text.startswith(("//", "/\\")):
        log.warning("%sReturnToPath is no path of this service; browsers land at / instead", _P)
        return "/"
    return text if text.startswith("/") else f"/{text}"


def _origin(text: str) -> str | None:
    text = text.strip().rstrip("/")
    if text:
        _check_address(_P + "RedirectUrl", text)
    return text or None


def _provider(settings: Settings, name: str, signin_url: str) -> Provider:
    path = f"{_P}{name}:"
    provider = settings.read(
        Provider, name, key=name, path=f"/{signin_url.replace('{0}', name.lower()).strip().strip('/')}"
    )
    built_in = KNOWN_PROVIDERS.get(name.lower())
    if built_in is not None and provider.issuer is None:
        provider = replace(
            provider,
            auth_url=provider.auth_url or built_in.auth_url,
            token_url=provider.token_url or built_in.token_url,
            info_url=provider.info_url or built_in.info_url,
            email_url=provider.email_url or built_in.email_url,
        )
    missing = [key for key, field in _NEEDED.items() if getattr(provider, field) is None]
    if missing and provider.issuer is None:
        known_names = "Google, LinkedIn, GitHub, Microsoft and Facebook"
        raise StartupError(
            f"{path}{missing[0]} is missing: a provider other than {known_names} needs {', '.join(_NEEDED)}, or the "
            "Issuer of OpenID Connect, where they are found"
        )
    for key, field in _ADDRESSES.items():
        url = getattr(provider, field)
        if url is not None:
            _check_address(path + key, url)
    if provider.auth_url is not None and "{2}" not in provider.auth_url:
        log.warning(
            "%sAuthUrl has no place for the state: without state={2} no sign-in in a browser can be completed",
            path,
        )
    if not provider.client_id:
        log.warning("%sClientId is empty: the provider cannot identify this service", path)
    if provider.back_channel:
        _check_back_channel(settings, path, provider.issuer)
    return provider


def _check_back_channel(settings: Settings, path: str, issuer: str | None) -> None:
    if issuer is None:
        raise StartupError(f"{path}BackChannelLogout needs the Issuer, whose keys verify logout tokens")
    if not settings.read(SessionCheck).command:
        log.warning(
            "%sBackChannelLogout: without Auth:SessionCheckCommand a session here outlasts that of the provider",
            path,
        )


def _check_paths(providers: tuple[Provider, ...]) -> None:
    seen: dict[str, str] = {}
    for provider in providers:
        other = seen.setdefault(provider.path.lower(), provider.key)
        if other != provider.key:
            raise StartupError(
                f"{_P}SigninUrl: the providers {other} and {provider.key} share the path {provider.path}; "
                "{0} stands for the provider's name"
            )


def _check_address(key: str, url: str) -> None:
    """Check an address of a provider; warn if it is http, since codes, secrets and tokens are sent to it.

    key: that of the configuration, for messages. The placeholders {0} to {2} of an AuthUrl may be anywhere behind the
    host. Raises StartupError for an invalid address.
    """
    try:
        read_address(url)
    except BadUrlError as error:
        raise StartupError(f"{key}: {error}") from None
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        log.warning("%s is http: an attacker on the network can take over sign-ins; use https", key)
