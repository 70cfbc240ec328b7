"""Read `Mail` and `Webhooks`: queues in the database."""

from __future__ import annotations

import ssl

from rowcall.core.accounts.options import MailOptions
from rowcall.core.config import Settings
from rowcall.core.webhooks.options import DeliveryOptions, Subscriber
from rowcall.service.startup_error import StartupError


def mail_options(settings: Settings) -> MailOptions:
    """Return the options of mail. Raises `StartupError` for a file without certificates."""
    options = settings.read(MailOptions)
    if options.ca_file is not None:
        try:
            ssl.create_default_context(cafile=options.ca_file)
        except OSError as error:
            message = f"Mail:CaFile: {options.ca_file} has no certificates that can be read: {error}"
            raise StartupError(message) from None
    return options


def delivery_options(settings: Settings) -> DeliveryOptions | None:
    """Return the options of deliveries; None: they are off. Raises `ConfigError`."""
    if not settings.is_enabled(DeliveryOptions):
        return None
    names = settings.names_of(Subscriber)
    return settings.read(
        DeliveryOptions, subscribers=tuple(settings.read(Subscriber, name, name=name) for name in names)
    )
