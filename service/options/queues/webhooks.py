"""Read the section `Webhooks`."""

from __future__ import annotations

from rowcall.core.config import Settings
from rowcall.core.webhooks.options import DeliveryOptions, Subscriber


def delivery_options(settings: Settings) -> DeliveryOptions | None:
    """Return the options of deliveries; None: they are off. Raises `ConfigError`."""
    if not settings.enabled(DeliveryOptions):
        return None
    names = settings.names_of(Subscriber)
    return settings.read(
        DeliveryOptions, subscribers=tuple(settings.read(Subscriber, name, name=name) for name in names)
    )
