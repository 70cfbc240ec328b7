"""Options of mail."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Transport(enum.Enum):
    """Where mail goes."""

    SMTP = "Smtp"
    FOLDER = "Folder"
    """Each mail is a file `.eml` in a folder."""
    LOG = "Log"
    """The log has each mail, with its text: for development only."""


class Security(enum.Enum):
    """Encryption of the connection to the mail server."""

    NONE = "None"
    START_TLS = "StartTls"
    TLS = "Tls"


@dataclass(frozen=True, slots=True)
class MailOptions:
    """Options of mail. Times in seconds."""

    transport: Transport = Transport.LOG
    sender: str = ""
    """Address of mail without a column `from`."""
    host: str = ""
    port: int = 587
    security: Security = Security.START_TLS
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    """Certificates of authorities to trust besides those of the system."""
    folder: str = ""
    templates: str | None = None
    """Folder of the templates."""
    concurrency: int = 2
    """Connections of a worker to the mail server."""
    per_minute: int | None = None
    """Most mails of a worker in a minute; None: no limit."""
    timeout: float = 30.0
    backoff: float = 30.0
    """Before the second attempt; doubled for each further one, up to an hour."""
    give_up: float = 172_800.0
    failure_topic: str | None = None
    """Topic of webhooks about mail that has failed for good."""
    retention: float = 604_800.0
