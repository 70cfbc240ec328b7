"""Mails of rows: columns that cannot be part of a mail."""

from __future__ import annotations

import pytest

from rowcall.core.accounts.message import MailError, Template, mail_of
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
@pytest.mark.parametrize("text", ["<", "(ada@example.com", "a\nb@example.com"])
def test_addresses_that_cannot_be_read_are_refused(name: str, text: str) -> None:
    cells = [cell("to", "ada@example.com"), cell("text", "x"), cell(name, text)]
    with pytest.raises(MailError, match=f"^{name} "):
        mail_of(cells, Template(), None, "shop@example.com")


@pytest.mark.parametrize("text", ["", "  ", ","])
def test_a_row_without_recipient_gives_no_mail(text: str) -> None:
    assert mail_of([cell("to", text), cell("text", "x")], Template(), None, "shop@example.com") is None
