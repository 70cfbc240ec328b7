"""A mail as data: out of a row and a template, and as a message of RFC 5322."""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime, getaddresses, parseaddr
from typing import Any

import orjson

from rowcall.core.auth.login import Cell
from rowcall.core.text.array_literal import elements

ADDRESSES = ("to", "cc", "bcc")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MAILBOX = re.compile(r'(?:"(?:[^"\\\x00-\x1f\x7f]|\\[^\x00-\x1f\x7f])*"@)?[^\s<>"\x00-\x1f\x7f]*')
"""An address whose text cannot end the argument of an SMTP command (RFC 5321, 4.1.2)."""
_FIELD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_DOTS = re.compile("[.\u3002\uff0e\uff61]")
"""Characters that separate the labels of a domain (RFC 3490 §3.1)."""
_LABEL = re.compile(r"[a-z0-9_\x80-\U0010ffff-]+")
_LONGEST_LABEL = 63
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)
MOST_RECIPIENTS = 100


class MailError(ValueError):
    """A row cannot become a mail, or a mail cannot become a message. The text gives the reason, names the column if one
    is wrong, and contains no address."""


@dataclass(frozen=True, slots=True)
class Template:
    """The texts of a template of mail, with placeholders such as `{column}`.

    subject: None: the first line of the file `.txt` is not `Subject: …`. text, html: None: there is no such file.
    """

    subject: str | None = None
    text: str | None = None
    html: str | None = None


def template_of(text: str | None, rich: str | None) -> Template:
    """Return a template of mail from its files.

    text: content of the file `.txt`, whose first line may be `Subject: …`. rich: content of the file `.html`. None:
    there is no such file.
    """
    subject = None
    if text is not None and text.lower().startswith("subject:"):
        first, _, text = text.partition("\n")
        subject = first.partition(":")[2].strip()
        text = text.lstrip("\r\n")
    return Template(subject, text, rich)


def mail_of(cells: Sequence[Cell], template: Template, token: str | None, sender: str) -> dict[str, Any] | None:
    """Return the mail of a row as the members of a JSON object; None if the column `to` is absent or blank.

    In the texts of the row and of the template, `{column}` and `{token}` are replaced by values, which are escaped in
    HTML; NULL is empty, and an unknown name stays. The row's columns `subject`, `text` and `html` win over the
    template, unless they are NULL. Raises `MailError` for a column that cannot be part of a mail, for a sender that is
    no address, for too many recipients, and if there is neither text nor HTML.

    token: one-time token of the row; None: the endpoint issues none. sender: used if the row's column `from` is absent
    or empty.
    """
    values = {cell.name.lower(): cell.text for cell in cells}
    by_name = {cell.name.lower(): cell for cell in cells}
    if token is not None:
        values["token"] = token
    mail: dict[str, Any] = {"from": _only_address("from", values.get("from") or sender)}
    for name in ADDRESSES:
        mail[name] = _addresses(name, by_name.get(name))
    if not mail["to"]:
        return None
    if sum(len(mail[name]) for name in ADDRESSES) > MOST_RECIPIENTS:
        raise MailError(f"it has more than {MOST_RECIPIENTS} recipients")
    if values.get("reply_to"):
        mail["replyTo"] = _only_address("reply_to", values["reply_to"] or "")
    plain = _filler(values, lambda value: value)
    subject = template.subject if values.get("subject") is None else values["subject"]
    mail["subject"] = " ".join(plain(subject or "").split())
    text = template.text if values.get("text") is None else values["text"]
    rich = template.html if values.get("html") is None else values["html"]
    if text is None and rich is None:
        raise MailError("it has neither a column text or html nor a template")
    mail["text"] = None if text is None else plain(text)
    mail["html"] = None if rich is None else _filler(values, html.escape)(rich)
    mail["attachments"] = _attachments(values.get("attachments"))
    return mail


def _filler(values: Mapping[str, str | None], written: Callable[[str], str]) -> Callable[[str], str]:
    def value(match: re.Match[str]) -> str:
        name = match[1].lower()
        return written(values[name] or "") if name in values else match[0]

    return lambda text: _FIELD.sub(value, text)


def _addresses(name: str, cell: Cell | None) -> list[str]:
    if cell is None or cell.text is None:
        return []
    texts = [item for item in elements(cell.text) if item] if cell.is_array else [cell.text]
    addresses = [pair for text in texts for pair in _parse_addresses(name, text)]
    return [_format_address(name, display, address) for display, address in addresses]


def _parse_addresses(name: str, text: str) -> list[tuple[str, str]]:
    """Return display names and addresses of a list; empty for a blank text. Raises `MailError`. name: of the column."""
    if _CONTROL.search(text):
        raise MailError(f"{name} has an address that is not valid")
    pairs = [pair for pair in getaddresses([text]) if any(pair)]
    # An unreadable text has one empty pair, as have the gaps of a list.
    if not pairs and text.strip(" ,"):
        raise MailError(f"{name} has an address that is not valid")
    return pairs


def _only_address(name: str, text: str) -> str:
    pairs = _parse_addresses(name, text)
    if len(pairs) != 1:
        raise MailError(f"{name} is no address")
    return _format_address(name, *pairs[0])


def _format_address(name: str, display: str, address: str) -> str:
    try:
        _with_ascii_domain(address)
        return str(Address(display, addr_spec=address))
    except (ValueError, HeaderParseError, IndexError, AttributeError):  # the last two: faults of `email` in Python
        raise MailError(f"{name} has an address that is not valid") from None


def _with_ascii_domains(text: str) -> str:
    """Return a comma-separated text of addresses with their domains in ASCII, as DNS and mail servers without SMTPUTF8
    expect them. A text in ASCII is returned as it is, unchecked; for an invalid address in another text, raises
    `ValueError`, or its subclass `MailError`."""
    if text.isascii():
        return text
    pairs = ((display, _with_ascii_domain(address)) for display, address in getaddresses([text]))
    return ", ".join(_with_display_name(display, address) for display, address in pairs)


def _with_display_name(display: str, address: str) -> str:
    local, domain = _parts(address)
    if local.startswith('"'):
        # `Address` quotes the local part where that is needed.
        local = re.sub(r"\\(.)", r"\1", local[1:-1])
    return str(Address(display, local, domain))


def _with_ascii_domain(address: str) -> str:
    """Return the address with the labels of its domain in the form `xn--…` (RFC 5891 §4.4) where they are not ASCII.
    Raises `MailError`, also for an address that has syntax of SMTP outside of a quoted local part."""
    if not _MAILBOX.fullmatch(address):
        raise MailError("it has an address that is not valid")
    local, domain = _parts(address)
    if domain.isascii():
        return address
    # The codec `idna` of Python is that of RFC 3490, which sends mail for straße.de to another domain, strasse.de.
    labels = _DOTS.split(unicodedata.normalize("NFKC", domain.lower()).lower())
    return f"{local}@{'.'.join(map(_ascii_label, labels))}"


def _parts(address: str) -> tuple[str, str]:
    """Return the local part of an address, which is the text before its last `@`, and the domain."""
    local, _, domain = address.rpartition("@")
    return local, domain


def _ascii_label(label: str) -> str:
    """Return a normalized label of a domain in ASCII. Raises `MailError`, also if the normalization has made syntax of
    mail out of a character: `＞` is `>`, which ends the address of a recipient in SMTP."""
    if not _LABEL.fullmatch(label):
        raise MailError("it has an address whose domain is not valid")
    try:
        encoded = label if label.isascii() else "xn--" + label.encode("punycode").decode()
    except UnicodeError:
        encoded = ""
    if not 0 < len(encoded) <= _LONGEST_LABEL:
        raise MailError("it has an address whose domain is not valid")
    return encoded


def _attachments(text: str | None) -> list[dict[str, str]]:
    """Return the attachments in a JSON array of objects with `name`, `type` (`application/octet-stream` if it is
    missing) and `content` in base64; empty for None or an empty text. Raises `MailError` if the text is no such array,
    a type is no media type, or a name has a NUL."""
    if not text:
        return []
    try:
        attachments = [
            {
                "name": str(item["name"]),
                "type": str(item.get("type") or "application/octet-stream"),
                "content": str(item["content"]),
            }
            for item in orjson.loads(text)
        ]
        for item in attachments:
            base64.b64decode(item["content"], validate=True)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise MailError("attachments is no array of objects with name, type and content in base64") from None
    if not all(_MEDIA_TYPE.fullmatch(item["type"]) for item in attachments):
        raise MailError("attachments has a type that is no media type")
    if any("\0" in item["name"] for item in attachments):
        raise MailError("attachments has a name with a NUL character")
    return attachments


def message_of(mail: Mapping[str, Any], number: str, moment: datetime) -> EmailMessage:
    """Return the message to send. Raises `MailError` for an invalid or missing member.

    mail: with members as in the result of `mail_of`. number: becomes part of the Message-ID; the same for each attempt
    to send this mail. moment: date of the message.
    """
    message = EmailMessage()
    try:
        message["From"] = sender = _with_ascii_domains(mail["from"])
        message["To"] = _with_ascii_domains(", ".join(mail["to"]))
        if mail.get("cc"):
            message["Cc"] = _with_ascii_domains(", ".join(mail["cc"]))
        if mail.get("replyTo"):
            message["Reply-To"] = _with_ascii_domains(mail["replyTo"])
        message["Subject"] = mail.get("subject") or ""
        message["Date"] = format_datetime(moment)
        domain = sender.rpartition("@")[2].rstrip(">") or "localhost"
        message["Message-ID"] = f"<{number}@{domain}>"
        message["Auto-Submitted"] = "auto-generated"
        text, rich = mail.get("text"), mail.get("html")
        if text is not None:
            message.set_content(text)
            if rich is not None:
                message.add_alternative(rich, subtype="html")
        else:
            message.set_content(rich or "", subtype="html")
        for item in mail.get("attachments") or ():
            main, _, sub = item["type"].partition("/")
            message.add_attachment(base64.b64decode(item["content"]), maintype=main, subtype=sub, filename=item["name"])
    except MailError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise MailError(f"it is no valid message: {type(error).__name__}") from None
    return message


def recipients_of(mail: Mapping[str, Any]) -> list[str]:
    """Return the addresses of all recipients, also of blind copies, without names and with domains in ASCII. Raises
    `MailError`. mail: with members as in the result of `mail_of`."""
    texts = [text for name in ADDRESSES for text in mail.get(name) or ()]
    return [_with_ascii_domain(address) for _, address in getaddresses(texts)]


def sender_of(mail: Mapping[str, Any]) -> str:
    """Return the address of the sender, without name and with its domain in ASCII. Raises `MailError`. mail: with
    members as in the result of `mail_of`."""
    return _with_ascii_domain(parseaddr(mail["from"])[1])
