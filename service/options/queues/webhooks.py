"""Read the section `Webhooks`."""

from __future__ import annotations

from rowcall.core.config import Settings
from rowcall.core.config.table import is_named_by_user
from rowcall.core.config.tree import Section, find
from rowcall.core.endpoint.capabilities import WebhookScheme
from rowcall.core.outgoing.address import BadUrlError, read_address
from rowcall.core.webhooks.options import DeliveryOptions, Subscriber
from rowcall.core.webhooks.signatures import SecretError, check_secrets
from rowcall.service.startup_error import StartupError

_WEBHOOKS = "Webhooks:"
_SUBSCRIBERS = _WEBHOOKS + "Subscribers"


def delivery_options(settings: Settings) -> DeliveryOptions | None:
    """Return the options of deliveries; None: they are off. Raises `StartupError`."""
    if not settings.flag(_WEBHOOKS + "Enabled"):
        return None
    section = find(settings.root, _SUBSCRIBERS)
    children = section if isinstance(section, Section) else ()
    names = [child.name for child in children if is_named_by_user(f"{_SUBSCRIBERS}:{child.name}")]
    return DeliveryOptions(
        subscribers=tuple(_subscriber(settings, name) for name in names),
        concurrency=settings.integer(_WEBHOOKS + "Concurrency"),
        timeout=settings.seconds(_WEBHOOKS + "Timeout"),
        backoff=settings.seconds(_WEBHOOKS + "Backoff"),
        longest_pause=settings.seconds(_WEBHOOKS + "LongestPause"),
        give_up=settings.seconds(_WEBHOOKS + "GiveUpAfter"),
        retention=settings.seconds(_WEBHOOKS + "Retention"),
    )


def _subscriber(settings: Settings, name: str) -> Subscriber:
    path = f"{_SUBSCRIBERS}:{name}:"
    url = settings.text(path + "Url")
    try:
        read_address(url)
    except BadUrlError as error:
        raise StartupError(f"{path}Url: {error}") from None
    try:
        secrets = check_secrets(WebhookScheme.STANDARD, settings.text(path + "Secret"), signs=True)
    except SecretError as error:
        raise StartupError(f"{path}Secret {error}") from None
    return Subscriber(name, url, secrets, settings.texts(path + "Topics") or ("*",))
