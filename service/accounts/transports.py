"""Transports of mail: a mail server, files in a folder, the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import SMTP
from typing import Protocol

import aiosmtplib

from rowcall.core.accounts.options import MailOptions, Security, Transport

log = logging.getLogger("rowcall.mail")


class TransientError(Exception):
    """The mail was not sent; a later attempt may succeed."""


class FinalError(Exception):
    """The mail server refuses the mail for good."""


class MailTransport(Protocol):
    """The interface of mail transports."""

    async def send(self, sender: str, recipients: Sequence[str], message: EmailMessage, number: str) -> None:
        """Send a mail. Raises `TransientError` and `FinalError`, whose texts contain no texts of the mail.

        sender, recipients: addresses without display names. number: id of the mail, for log and file name.
        """

    async def close(self) -> None:
        """Close the connections."""


def transport_of(options: MailOptions) -> MailTransport:
    if options.transport is Transport.FOLDER:
        return _Folder(options.folder)
    return _Log() if options.transport is Transport.LOG else _Server(options)


class _Server:
    """Connections to a mail server, each of which sends one mail after another."""

    def __init__(self, options: MailOptions) -> None:
        self._options = options
        self._idle: list[aiosmtplib.SMTP] = []
        self._tls = ssl.create_default_context()
        if options.ca_file is not None:
            self._tls.load_verify_locations(options.ca_file)

    async def send(self, sender: str, recipients: Sequence[str], message: EmailMessage, number: str) -> None:
        client = self._idle.pop() if self._idle else None
        reused = client is not None
        try:
            client = client or await self._connect()
            try:
                refused, _ = await client.send_message(message, sender=sender, recipients=list(recipients))
            except aiosmtplib.SMTPServerDisconnected:
                if not reused:
                    raise
                # Servers close connections on which nothing was sent for a time.
                client = await self._connect()
                refused, _ = await client.send_message(message, sender=sender, recipients=list(recipients))
        except aiosmtplib.SMTPRecipientsRefused as error:
            await self._release(client)
            codes = [item.code for item in error.recipients]
            text = f"the mail server refuses all recipients ({', '.join(map(str, codes))})"
            raise (FinalError if all(code >= 500 for code in codes) else TransientError)(text) from None
        except aiosmtplib.SMTPResponseException as error:
            await self._release(client)
            text = f"the mail server answers {error.code} {error.message}"
            # Without the right name and password, every mail would be lost; the operator can repair that.
            final = error.code >= 500 and not isinstance(error, aiosmtplib.SMTPAuthenticationError)
            raise (FinalError if final else TransientError)(text) from None
        except aiosmtplib.SMTPNotSupported:
            await self._release(client)
            text = "the mail server does not accept addresses with other than ASCII letters before the @ (SMTPUTF8)"
            raise FinalError(text) from None
        except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
            if client is not None:
                client.close()
            raise TransientError(f"the mail server cannot be reached: {error}") from None
        except ValueError as error:
            if client is None:  # the name of the mail server is invalid, which the operator can repair
                raise TransientError(f"the mail server cannot be reached: {error}") from None
            # A text that SMTP cannot carry: a further attempt would fail in the same way.
            client.close()
            raise FinalError(f"it cannot be sent by SMTP: {type(error).__name__}") from None
        except BaseException:
            if client is not None:
                client.close()
            raise
        await self._release(client)
        if refused:
            log.warning("mail %s: the mail server refuses %d of its recipients", number, len(refused))

    async def _connect(self) -> aiosmtplib.SMTP:
        options = self._options
        client = aiosmtplib.SMTP(
            hostname=options.host,
            port=options.port,
            username=options.user,
            password=options.password,
            timeout=options.timeout,
            tls_context=self._tls,
            use_tls=options.security is Security.TLS,
            start_tls=options.security is Security.START_TLS,
        )
        try:
            await client.connect()
        except BaseException:
            client.close()
            raise
        return client

    async def _release(self, client: aiosmtplib.SMTP | None) -> None:
        if client is None:
            return
        if client.is_connected and len(self._idle) < self._options.concurrency:
            self._idle.append(client)
        else:
            client.close()

    async def close(self) -> None:
        for client in self._idle:
            with contextlib.suppress(aiosmtplib.SMTPException, OSError, TimeoutError):
                await client.quit()
        self._idle.clear()


class _Folder:
    """Writes each mail to a file, for development and tests."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    async def send(self, sender: str, recipients: Sequence[str], message: EmailMessage, number: str) -> None:
        try:
            await asyncio.to_thread(self._write, message, number)
        except OSError as error:
            raise TransientError(f"{self._folder} cannot be written: {error.strerror}") from None

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _write(self, message: EmailMessage, number: str) -> None:
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, f"{number}.eml")
        with open(f"{path}.new", "wb") as file:
            file.write(message.as_bytes(policy=SMTP))
        os.replace(f"{path}.new", path)


class _Log:
    """Writes each mail to the log, for development."""

    async def send(self, sender: str, recipients: Sequence[str], message: EmailMessage, number: str) -> None:
        body = message.get_body(("plain", "html"))
        text = "" if body is None else str(body.get_content()).strip()
        log.info("mail %s to %s: %s\n%s", number, ", ".join(recipients), message["Subject"], text)

    async def close(self) -> None:
        """Do nothing: there is no connection."""
