"""Read the section `Mail`."""

from __future__ import annotations

import ssl

from rowcall.core.accounts.options import MailOptions, Security, Transport
from rowcall.core.config import Settings
from rowcall.service.startup_error import StartupError

_P = "Mail:"


def mail_options(settings: Settings) -> MailOptions:
    """Return the options of mail. Raises `StartupError` for settings with which none could be sent."""
    transport = Transport(settings.choice(_P + "Transport"))
    sender = settings.text_or_none(_P + "From") or ""
    host, folder = settings.text_or_none(_P + "Host") or "", settings.text_or_none(_P + "Folder") or ""
    if settings.flag(_P + "Enabled"):
        if transport is Transport.SMTP and not host:
            raise StartupError("Mail:Host is missing, the mail server; or set Mail:Transport to Folder or Log")
        if transport is Transport.FOLDER and not folder:
            raise StartupError("Mail:Folder is missing, which Mail:Transport Folder needs")
    return MailOptions(
        transport=transport,
        sender=sender,
        host=host,
        port=settings.integer(_P + "Port"),
        security=Security(settings.choice(_P + "Security")),
        user=settings.text_or_none(_P + "User"),
        password=settings.text_or_none(_P + "Password"),
        ca_file=_ca_file(settings),
        folder=folder,
        templates=settings.text_or_none(_P + "Templates"),
        concurrency=settings.integer(_P + "Concurrency"),
        per_minute=settings.integer_or_none(_P + "PerMinute"),
        timeout=settings.seconds(_P + "Timeout"),
        backoff=settings.seconds(_P + "Backoff"),
        give_up=settings.seconds(_P + "GiveUpAfter"),
        failure_topic=settings.text_or_none(_P + "FailureTopic") or None,
        retention=settings.seconds(_P + "Retention"),
    )


def _ca_file(settings: Settings) -> str | None:
    path = settings.text_or_none(_P + "CaFile") or None
    if path is not None:
        try:
            ssl.create_default_context(cafile=path)
        except OSError as error:
            raise StartupError(f"{_P}CaFile: {path} has no certificates that can be read: {error}") from None
    return path
