"""An endpoint whose protective annotation cannot be applied is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rowcall.core.building.configuration_checks import KnownNames
from rowcall.core.building.endpoint_builder import build_endpoint
from tests.core.routines import EVERYTHING, catalog, column, parameter, routine

COLUMNS = (column("id"), column("card_no", 25), column("row"))


@pytest.mark.parametrize(
    ("line", "served"),
    [
        ("parameter_hash _password", True),
        ("parameter_hash pasword", False),
        ("parameter_hash password\nparam_hash _note", True),
    ],
)
def test_parameter_hash_with_an_unknown_parameter_leaves_the_endpoint_out(line: str, served: bool) -> None:
    made = routine(parameter("_password", 25), parameter("_note", 25), comment=f"HTTP POST\n{line}")
    built = build_endpoint(made, catalog(made), EVERYTHING)
    assert (built.endpoint is not None) == served
    values = [item.message for item in built.diagnostics if item.left_out]
    assert [message for message in values if "pasword in parameter_hash is no parameter" in message] == values
    assert bool(values) != served


@pytest.mark.parametrize(
    "line",
    [
        "validate pasword using required",
        "validate _password using nonsense",
        "validate email using required",
        "Validate pasword using required",
        "password_rules pasword",
        "password_rules pasword off",
        "encrypt pasword",
        "encrypt _password pasword",
        "encrypt all",
        "Encrypt pasword and note",
        "encrypt pasword as secrets",
        "protect secret",
        "protected _secret",
        "decrypt pin",
        "decrypt cardNo, pin",
        "decrypted pin as secrets",
        "Decrypt card_num",
    ],
)
def test_a_line_that_cannot_protect_leaves_the_endpoint_out(line: str) -> None:
    made = routine(
        parameter("_password", 25), columns=COLUMNS, returns=2249, returns_set=True, comment=f"HTTP POST\n{line}"
    )
    known = replace(EVERYTHING, known=KnownNames(rules=frozenset({"required"})))
    built = build_endpoint(made, catalog(made), known)
    assert built.endpoint is None
    assert sum(item.left_out for item in built.diagnostics) >= 1
    assert {item.line for item in built.diagnostics if item.left_out} == {line}


@pytest.mark.parametrize(
    "line",
    [
        "Encrypt the values at rest",
        "Encrypt the password before it is stored.",
        "Encrypted values are stored in the vault.",
        "encrypted at rest",
        "Encrypt everything (AES-256)",
        "Encrypt customers' data",
        "Protected route",
        "Protected by row level security",
        "protect users from themselves",
        "protected health information of patients here",
        "Decrypt the card number on read",
        "Decrypted by the client, never here.",
        "Validate the input before it is stored",
        "Validate input against the schema.",
        "Validate passwords using the policy of the house",
        "Validate the password using required rules",
        "Validation rules: see the wiki",
        "validates what comes",
    ],
)
def test_prose_with_the_same_first_word_has_no_effect(line: str) -> None:
    made = routine(
        parameter("_password", 25), columns=COLUMNS, returns=2249, returns_set=True, comment=f"HTTP POST\n{line}"
    )
    known = replace(EVERYTHING, known=KnownNames(rules=frozenset({"required"})))
    built = build_endpoint(made, catalog(made), known)
    assert built.endpoint is not None
    assert not any(item.left_out for item in built.diagnostics)


@pytest.mark.parametrize("line", ["encrypt _token", "protect token, _password"])
def test_a_parameter_that_is_set_after_encryption_leaves_the_endpoint_out(line: str) -> None:
    comment = f"HTTP POST\n{line}\n_token = select 'secret'"
    made = routine(parameter("_password", 25), parameter("_token", 25), comment=comment)
    built = build_endpoint(made, catalog(made), EVERYTHING)
    assert built.endpoint is None
    message = "_token is set after encryption, so its value would not be encrypted; the endpoint is left out"
    assert [(item.line, item.message) for item in built.diagnostics] == [(line, message)]
    prose = "HTTP POST\nEncrypt the token before it is stored.\n_token = select 'secret'"
    made = routine(parameter("_password", 25), parameter("_token", 25), comment=prose)
    assert build_endpoint(made, catalog(made), EVERYTHING).endpoint is not None


def test_a_number_to_encrypt_is_a_warning() -> None:
    made = routine(parameter("_member", 23), parameter("_iban", 25), comment="HTTP POST\nencrypt _member, _iban")
    built = build_endpoint(made, catalog(made), EVERYTHING)
    assert built.endpoint is not None
    assert [item.message for item in built.diagnostics] == ["_member is integer, of which no value is encrypted"]


@pytest.mark.parametrize(
    "line", ["encrypt _PASSWORD and password", "encrypt password as secrets", "decrypt cardNo, CARD_NO", "decrypt row"]
)
def test_names_are_those_of_the_database_or_of_requests(line: str) -> None:
    made = routine(
        parameter("_password", 25),
        columns=COLUMNS,
        returns=2249,
        returns_set=True,
        comment=f"HTTP POST\n{line}\nparam _password code",
    )
    built = build_endpoint(made, catalog(made), EVERYTHING)
    assert built.endpoint is not None
    assert built.diagnostics == ()


@pytest.mark.parametrize("line", ["parameter_hash _password, _note", "Param_hash _password and more"])
def test_parameter_hash_with_several_words_leaves_the_endpoint_out(line: str) -> None:
    made = routine(parameter("_password", 25), parameter("_note", 25), comment=f"HTTP POST\n{line}")
    built = build_endpoint(made, catalog(made), EVERYTHING)
    assert built.endpoint is None
    expected = f"one parameter is expected; write a line `{line.split()[0].lower()} <parameter>` for each"
    assert (built.diagnostics[0].message, built.diagnostics[0].line) == (expected, line)
