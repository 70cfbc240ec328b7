"""A real SMTP server (aiosmtpd) that holds what it has accepted, and can refuse mail."""

from __future__ import annotations

import email
import ssl
import time
from collections.abc import Callable
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from tests.harness.postgres import free_port
from tests.harness.waiting import wait_until

USER, PASSWORD = "mailer", "the-password-of-the-mailer"


class MailServer:
    """refusal: returns the answer to a mail instead of accepting it. tls: offers STARTTLS, and requires a sign-in;
    at_once: encrypts from the begin of a connection, without a sign-in. smtputf8: offers SMTPUTF8.
    """

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        port: int | None = None,
        *,
        at_once: bool = False,
        smtputf8: bool = True,
    ) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.moments: list[float] = []
        self.sessions: set[int] = set()
        self.encrypted: list[bool] = []
        self.attempts = 0
        self.refusal: Callable[[Envelope], str | None] = lambda _envelope: None
        self.refused_recipients: dict[str, str] = {}
        self._at_once = at_once
        self.port = port or free_port()
        options: dict[str, Any] = {"enable_SMTPUTF8": smtputf8}
        if at_once:
            options |= {"ssl_context": tls}
        elif tls is not None:
            options |= {"tls_context": tls, "require_starttls": True, "authenticator": _check, "auth_required": True}
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port, **options)
        self._controller.start()
        self._running = True

    async def handle_RCPT(
        self, _server: Any, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address in self.refused_recipients:
            return self.refused_recipients[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        self.attempts += 1
        response = self.refusal(envelope)
        if response is not None:
            return response
        content = envelope.content
        assert isinstance(content, bytes)
        self.messages.append(email.message_from_bytes(content, policy=default))
        self.recipients.append(list(envelope.rcpt_tos))
        self.moments.append(time.monotonic())
        self.sessions.add(id(session))
        self.encrypted.append(session.ssl is not None or self._at_once)
        return "250 OK"

    def wait_for(self, count: int, seconds: float = 20) -> list[EmailMessage]:
        """Return the messages when there are so many."""
        wait_until(lambda: len(self.messages) >= count, f"{count} mails have arrived", seconds)
        return self.messages

    def stop(self) -> None:
        if self._running:
            self._running = False
            self._controller.stop()


def _check(_server: Any, _session: Session, _envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
    good = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=good, handled=False)
