"""Read the section `Mail`."""

from __future__ import annotations

import ssl

from rowcall.core.accounts.options import MailOptions
from rowcall.core.config import Settings
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
