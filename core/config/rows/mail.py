"""Keys of mail."""

from rowcall.core.sections.keys import Key, choice, flag, integer, interval, section, text

ROWS: tuple[Key, ...] = (
    section("Mail", "Mail of endpoints with `send_mail`, and of `rowcall.send_mail` in SQL."),
    flag("Mail:Enabled", False, "Send mail that waits in the database in this service."),
    choice(
        "Mail:Transport",
        "Smtp Folder Log",
        "Smtp",
        "Smtp: a mail server. Folder: a file `.eml` for each mail. Log: the log, with the texts; for development.",
    ),
    text("Mail:From", None, "Sender, such as `Shop <shop@example.com>`, of mail without a column `from`."),
    text("Mail:Host", None, "Host name of the mail server."),
    integer("Mail:Port", 587, "Port of the mail server.", minimum=1),
    choice(
        "Mail:Security",
        "None StartTls Tls",
        "StartTls",
        "StartTls: encryption begins after the greeting, and is required. Tls: from the first byte. None: none.",
    ),
    text("Mail:User", None, "Name with which the service signs in at the mail server."),
    text("Mail:Password", None, "Password of that name.", secret=True),
    text("Mail:CaFile", None, "File with certificates of authorities to trust besides those of the system."),
    text("Mail:Folder", None, "Folder of the transport Folder."),
    text("Mail:Templates", None, "Folder of the templates of `send_mail template NAME`: NAME.txt and NAME.html."),
    integer("Mail:Concurrency", 2, "Connections of a worker to the mail server.", minimum=1),
    integer("Mail:PerMinute", None, "Most mails that a worker sends in a minute. null: no limit.", minimum=1),
    interval("Mail:Timeout", "30 seconds", "Time within which the mail server has to respond to a command."),
    interval("Mail:Backoff", "30 seconds", "Time before the second attempt; doubled for each further one."),
    interval("Mail:GiveUpAfter", "2 days", "Time after which a mail is not attempted any more."),
    text(
        "Mail:FailureTopic",
        None,
        "Topic of webhooks about mail that has failed for good, such as `mail.failed`. null: there are none.",
    ),
    interval("Mail:Retention", "7 days", "Time for which the table has mail that was sent or has failed."),
)
