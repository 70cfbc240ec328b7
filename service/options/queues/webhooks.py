"""Read the section `Webhooks`."""

from __future__ import annotations

from rowcall.core.config import Settings
from rowcall.core.config.table import is_named_by_user
from rowcall.core.config.tree import Section, find
from rowcall.core.webhooks.options import DeliveryOptions, Subscriber

_SUBSCRIBERS = "Webhooks:Subscribers"


def delivery_options(settings: Settings) -> DeliveryOptions | None:
    """Return the options of deliveries; None: they are off. Raises `ConfigError`."""
    if not settings.enabled(DeliveryOptions):
        return None
    section = find(settings.root, _SUBSCRIBERS)
    children = section if isinstance(section, Section) else ()
    names = [child.name for child in children if is_named_by_user(f"{_SUBSCRIBERS}:{child.name}")]
    return settings.read(
        DeliveryOptions, subscribers=tuple(settings.read(Subscriber, name, name=name) for name in names)
    )
