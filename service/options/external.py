"""`Auth:External` → sign-in through outside providers, where it is on (external-sign-in-1 to external-sign-in-11)."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

from rowcall.core.auth.external.known_providers import KNOWN_PROVIDERS
from rowcall.core.auth.external.options import TEMPLATE, ExternalOptions, Provider
from rowcall.core.auth.external.page import ANALYTICS
from rowcall.core.config import Settings
from rowcall.core.config.table import is_named_by_user
from rowcall.core.config.tree import Section, find
from rowcall.core.outgoing.address import BadUrlError, read_address
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "Auth:External:"
_LOCAL = ("localhost", "127.0.0.1", "::1")
_ADDRESSES = ("AuthUrl", "TokenUrl", "InfoUrl", "EmailUrl", "Issuer", "LogoutUrl", "RevokeUrl")
_NEEDED = ("AuthUrl", "TokenUrl", "InfoUrl")


def external_options(settings: Settings, *, offered: bool) -> ExternalOptions | None:
    """None: it is off, or no provider is on. offered: there is a scheme to sign in with.

    Raises:
        StartupError: a provider lacks an address, or two share their path.
    """
    if not settings.flag(_P + "Enabled"):
        return None
    providers = tuple(_providers(settings))
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
    return ExternalOptions(
        providers=providers,
        status_key=settings.text(_P + "BrowserSessionStatusKey"),
        message_key=settings.text(_P + "BrowserSessionMessageKey"),
        template=_template(settings),
        redirect_url=_origin(settings),
        return_to=_return_to(settings),
        return_key=settings.text(_P + "ReturnToPathQueryStringKey"),
        command=settings.text(_P + "LoginCommand"),
        logout_command=settings.text(_P + "BackChannelLogoutCommand"),
        analytics=_analytics(settings),
        ip_key=settings.text_or_none(_P + "ClientAnalyticsIpKey") or "",
        requires_state=settings.flag(_P + "RequireState"),
        rate_limiter=settings.text_or_none(_P + "RateLimiterPolicy") or None,
    )


def _analytics(settings: Settings) -> str | None:
    """Null and an empty text collect nothing; what is not there at all collects the usual."""
    if find(settings.root, _P + "ClientAnalyticsData") is None:
        return ANALYTICS
    return (settings.text_or_none(_P + "ClientAnalyticsData") or "").strip() or None


def _template(settings: Settings) -> str:
    text = settings.text_or_none(_P + "SignInHtmlTemplate") or TEMPLATE
    if "{1}" not in text:
        log.warning("%sSignInHtmlTemplate has no {1}: without its script the page leads no browser to the provider", _P)
    return text


def _return_to(settings: Settings) -> str:
    text = settings.text(_P + "ReturnToPath").strip()
    if "://" in text or text.startswith(("//", "/\\")):
        log.warning("%sReturnToPath is no path of this service; browsers land at / instead", _P)
        return "/"
    return text if text.startswith("/") else f"/{text}"


def _origin(settings: Settings) -> str | None:
    text = (settings.text_or_none(_P + "RedirectUrl") or "").strip().rstrip("/")
    if text:
        _check_address(_P + "RedirectUrl", text)
    return text or None


def _providers(settings: Settings) -> list[Provider]:
    section = find(settings.root, _P.removesuffix(":"))
    children = section if isinstance(section, Section) else ()
    # A list where a text belongs is no provider; the check of all values tells of it.
    names = [child.name for child in children if is_named_by_user(_P + child.name)]
    return [_provider(settings, name) for name in names if settings.flag(f"{_P}{name}:Enabled")]


def _provider(settings: Settings, name: str) -> Provider:
    path = f"{_P}{name}:"
    given = {key: (settings.text_or_none(path + key) or "").strip() or None for key in _ADDRESSES}
    known = KNOWN_PROVIDERS.get(name.lower())
    if known is not None and given["Issuer"] is None:
        defaults = (known.auth_url, known.token_url, known.info_url, known.email_url)
        given = {**given, **{key: given[key] or url for key, url in zip(_ADDRESSES, defaults, strict=False)}}
    missing = [key for key in _NEEDED if given[key] is None]
    if missing and given["Issuer"] is None:
        known_names = "Google, LinkedIn, GitHub, Microsoft and Facebook"
        raise StartupError(
            f"{path}{missing[0]} is missing: a provider other than {known_names} needs {', '.join(_NEEDED)}, or the "
            "Issuer of OpenID Connect, where they are found"
        )
    for key, url in given.items():
        if url is not None:
            _check_address(path + key, url)
    if given["AuthUrl"] is not None and "{2}" not in given["AuthUrl"]:
        log.warning(
            "%sAuthUrl has no place for the state: without state={2} no sign-in that begins in a browser can end",
            path,
        )
    client_id = (settings.text_or_none(path + "ClientId") or "").strip()
    if not client_id:
        log.warning("%sClientId is empty: the provider will not know who asks", path)
    return Provider(
        key=name,
        path=_sign_in_path(settings, name),
        client_id=client_id,
        client_secret=settings.text_or_none(path + "ClientSecret") or "",
        auth_url=given["AuthUrl"],
        token_url=given["TokenUrl"],
        info_url=given["InfoUrl"],
        email_url=given["EmailUrl"],
        issuer=given["Issuer"],
        scope=settings.text(path + "Scope"),
        pkce=settings.flag(path + "Pkce"),
        keeps_tokens=settings.flag(path + "KeepTokens"),
        logout_url=given["LogoutUrl"],
        revoke_url=given["RevokeUrl"],
        back_channel=_back_channel(settings, path, given["Issuer"]),
        unverified_email=settings.flag(path + "AllowUnverifiedEmail"),
    )


def _back_channel(settings: Settings, path: str, issuer: str | None) -> bool:
    if not settings.flag(path + "BackChannelLogout"):
        return False
    if issuer is None:
        raise StartupError(f"{path}BackChannelLogout needs the Issuer, whose keys verify what is said")
    if not settings.text_or_none("Auth:SessionCheckCommand"):
        log.warning(
            "%sBackChannelLogout: without Auth:SessionCheckCommand a session here goes on when the one there has ended",
            path,
        )
    return True


def _sign_in_path(settings: Settings, name: str) -> str:
    text = settings.text(_P + "SigninUrl").replace("{0}", name.lower()).strip()
    return "/" + text.strip("/")


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
    """Codes, secrets and tokens travel there. {0} to {2} of an AuthUrl may be anywhere behind the host."""
    try:
        read_address(url)
    except BadUrlError as error:
        raise StartupError(f"{key}: {error}") from None
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        log.warning("%s is http: whoever is on the way can take over sign-ins; use https", key)
