"""Parts of the requests of passkeys."""

from __future__ import annotations

import pytest

from rowcall.service.auth.passkeys.requests import names_one_record

UUID = "0b5f3c52-7e0c-4e0a-9a51-3a2f6a3a8f10"


@pytest.mark.parametrize("text", ["0", "7", "-7", "9" * 19, UUID])
def test_equivalent_notations_of_postgresql_name_one_record(text: str) -> None:
    assert names_one_record(text)


@pytest.mark.parametrize(
    "text", ["", "-", "-0", "+7", "07", "-07", "7 ", "7\n", "7.0", "٧", "9" * 20, UUID.upper(), UUID.replace("-", "")]
)
def test_ambiguous_notations_are_refused(text: str) -> None:
    assert not names_one_record(text)
