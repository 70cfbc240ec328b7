"""Options of mail."""

from __future__ import annotations

import enum

from rowcall.core.sections.declaration import choice, flag, integer, interval, section, text
from rowcall.core.sections.errors import ConfigError
from rowcall.core.sections.values import or_empty


class Transport(enum.Enum):
    """How the service delivers mail: to an SMTP server, as files in a folder, or to the log."""

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


@section("Mail", "Mail of endpoints with `send_mail`, and of `rowcall.send_mail` in SQL.")
class MailOptions:
    """Options of mail. Times in seconds."""

    enabled: bool = flag("Enabled", False, "Send mail that waits in the database in this service.")
    transport: Transport = choice(
        "Transport",
        Transport,
        "Smtp",
        "Smtp: a mail server. Folder: a file `.eml` for each mail. Log: the log, with the texts; for development.",
    )
    sender: str = text(
        "From", None, "Sender, such as `Shop <shop@example.com>`, of mail without a column `from`.", convert=or_empty
    )
    host: str = text("Host", None, "Host name of the mail server.", convert=or_empty)
    port: int = integer("Port", 587, "Port of the mail server.", minimum=1)
    security: Security = choice(
        "Security",
        Security,
        "StartTls",
        "StartTls: encryption begins after the greeting, and is required. Tls: from the first byte. None: none.",
    )
    user: str | None = text("User", None, "Name with which the service signs in at the mail server.")
    password: str | None = text("Password", None, "Password of that name.", secret=True)
    ca_file: str | None = text(
        "CaFile", None, "File with certificates of authorities to trust besides those of the system."
    )
    folder: str = text("Folder", None, "Folder of the transport Folder.", convert=or_empty)
    templates: str | None = text(
        "Templates", None, "Folder of the templates of `send_mail template NAME`: NAME.txt and NAME.html."
    )
    concurrency: int = integer("Concurrency", 2, "Connections of a worker to the mail server.", minimum=1)
    per_minute: int | None = integer(
        "PerMinute", None, "Most mails that a worker sends in a minute. null: no limit.", minimum=1
    )
    timeout: float = interval("Timeout", "30 seconds", "Time within which the mail server has to respond to a command.")
    backoff: float = interval("Backoff", "30 seconds", "Time before the second attempt; doubled for each further one.")
    give_up: float = interval("GiveUpAfter", "2 days", "Time after which a mail is not attempted any more.")
    failure_topic: str | None = text(
        "FailureTopic",
        None,
        "Topic of webhooks about mail that has failed for good, such as `mail.failed`. null: there are none.",
    )
    retention: float = interval("Retention", "7 days", "Time for which the table has mail that was sent or has failed.")

    def __post_init__(self) -> None:
        if not self.enabled:
            return
        if self.transport is Transport.SMTP and not self.host:
            raise ConfigError("Mail:Host is missing, the mail server; or set Mail:Transport to Folder or Log")
        if self.transport is Transport.FOLDER and not self.folder:
            raise ConfigError("Mail:Folder is missing, which Mail:Transport Folder needs")
