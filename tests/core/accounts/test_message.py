"""Mails of rows: columns that cannot be part of a mail."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rowcall.core.accounts.message import MailError, Template, mail_of, message_of, recipients_of, sender_of
from rowcall.core.auth.login import Cell


def cell(name: str, text: str) -> Cell:
    return Cell(name, 25, False, text, "")


@pytest.mark.parametrize(
    "attachments",
    [
        "[" * 100_000,
        r'[{"name": "a\ud800.txt", "content": ""}]',
        r'[{"name": "a\u0000.txt", "content": ""}]',
        '[{"name": "a.txt", "content": "?"}]',
        '[{"content": ""}]',
        '{"name": "a.txt"}',
        "1",
    ],
)
def test_attachments_that_no_mail_can_have_are_refused(attachments: str) -> None:
    cells = [cell("to", "ada@example.com"), cell("text", "x"), cell("attachments", attachments)]
    with pytest.raises(MailError, match="attachments"):
        mail_of(cells, Template(), None, "shop@example.com")


@pytest.mark.parametrize("name", ["to", "cc", "reply_to", "from"])
@pytest.mark.parametrize(
    "text",
    ["<", "(ada@example.com", "a\nb@example.com", "a@[x>]", "a@[x<y]", '"a b"@[x>]', '"x.org@[@=?utf-8?q?'],
)
def test_addresses_that_cannot_be_read_are_refused(name: str, text: str) -> None:
    cells = [cell("to", "ada@example.com"), cell("text", "x"), cell(name, text)]
    with pytest.raises(MailError, match=f"^{name} "):
        mail_of(cells, Template(), None, "shop@example.com")


@pytest.mark.parametrize("text", ["", "  ", ","])
def test_a_row_without_recipient_gives_no_mail(text: str) -> None:
    assert mail_of([cell("to", text), cell("text", "x")], Template(), None, "shop@example.com") is None


@pytest.mark.parametrize("domain", ["a.example＞.b.example", "a℀b.example", "a＠b.example", "a\u00a0b.ü", "ü..example"])
@pytest.mark.parametrize("name", ["to", "cc", "reply_to", "from"])
def test_a_domain_whose_normalized_form_has_syntax_of_mail_is_refused(name: str, domain: str) -> None:
    cells = [cell("to", "ada@example.com"), cell("text", "x"), cell(name, f"x@{domain}")]
    with pytest.raises(MailError, match=f"^{name} "):
        mail_of(cells, Template(), None, "shop@example.com")


@pytest.mark.parametrize("domain", ["a.example＞.b.example", "a℀b.example", "a＠b.example", f"{70 * 'ü'}.example"])
def test_mail_to_an_invalid_domain_is_refused(domain: str) -> None:
    mail = {"from": f"x@{domain}", "to": [f"x@{domain}"], "text": "x"}
    for refused in (recipients_of, sender_of, lambda mail: message_of(mail, "1", datetime(2026, 1, 1, tzinfo=UTC))):
        with pytest.raises(MailError, match="domain is not valid"):
            refused(mail)


@pytest.mark.parametrize("address", ["a@[x>]", "a@[x<y]", '"a b"@[x>]', "a@[x\t]"])
def test_mail_to_an_address_that_has_syntax_of_smtp_is_refused(address: str) -> None:
    mail = {"from": address, "to": [address], "text": "x"}
    for refused in (recipients_of, sender_of):
        with pytest.raises(MailError):
            refused(mail)


def test_an_address_literal_is_accepted() -> None:
    assert recipients_of({"to": ["a@[192.0.2.1]", "a@[IPv6:2001:db8::1]", '"a > b"@example.com']}) == [
        "a@[192.0.2.1]", "a@[IPv6:2001:db8::1]", '"a > b"@example.com',
    ]  # fmt: skip


@pytest.mark.parametrize("address", ['"ann marie"@example.com', r'"a\"b\\c"@example.com', "a.b@example.com"])
def test_a_quoted_local_part_is_preserved_with_a_non_ascii_name(address: str) -> None:
    cells = [cell("to", f"Jörg <j@example.com>, {address}"), cell("reply_to", f"Jörg <{address}>"), cell("text", "x")]
    mail = mail_of(cells, Template(), None, "shop@example.com")
    assert mail is not None
    message = message_of(mail, "1", datetime(2026, 1, 1, tzinfo=UTC))
    assert [item.addr_spec for item in message["To"].addresses] == ["j@example.com", address]
    assert [item.addr_spec for item in message["Reply-To"].addresses] == [address]
    assert recipients_of(mail) == ["j@example.com", address]
