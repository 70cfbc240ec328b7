"""The storage format of the built-in hasher (sign-in-24 to sign-in-26)."""

from __future__ import annotations

import base64

import pytest

from rowcall.core.auth.password_hash import (
    ITERATIONS,
    decoy,
    hash_password,
    iterations_of,
    missing_rounds,
    verify_password,
)

STORED = "AAECAwQFBgcICQoLDA0OD66u4i0SKVJ2LT1k8TKcqLLbC/3UQc00wEbZqG9ImTBO"
"""Of `grün`: salt + hashlib.pbkdf2_hmac("sha256", "grün".encode(), salt, 600_000, 32); its salt is bytes(range(16))."""
STRONGER = 700_000


def test_a_hash_of_npgsqlrest_is_verified() -> None:
    assert verify_password("grün", STORED)
    assert not verify_password("grun", STORED)


def test_a_new_hash_has_the_format_of_npgsqlrest() -> None:
    made = hash_password("secret")
    assert len(made) == 64
    assert len(base64.b64decode(made, validate=True)) == 48
    assert verify_password("secret", made)


@pytest.mark.slow
def test_no_two_hashes_are_alike() -> None:
    assert hash_password("secret") != hash_password("secret")


@pytest.mark.slow
def test_another_work_factor_is_part_of_the_hash() -> None:
    made = hash_password("secret", STRONGER)
    assert made.startswith("$pbkdf2-sha256$i=700000$")
    assert iterations_of(made) == STRONGER
    assert verify_password("secret", made)
    assert not verify_password("Secret", made)


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "x",
        STORED[:-4],
        STORED + "AAAA",
        STORED[:-1] + "!",
        " " + STORED,
        "$pbkdf2-sha256$i=0$" + STORED,
        "$pbkdf2-sha256$i=99999999$" + STORED,
        "$pbkdf2-sha256$i=-1$" + STORED,
        "$pbkdf2-sha256$i=७०००००$" + STORED,
    ],
)
def test_an_invalid_hash_verifies_no_password(stored: str) -> None:
    assert iterations_of(stored) is None
    assert not verify_password("grün", stored)


@pytest.mark.parametrize("iterations", [ITERATIONS, STRONGER, STRONGER + 1])
def test_a_check_takes_at_least_the_rounds_of_the_decoy(iterations: int) -> None:
    """Otherwise a quick response would reveal a hash from before the work factor was raised."""
    work = iterations_of(decoy(STRONGER)) or 0
    assert iterations + missing_rounds(iterations, work) == max(iterations, STRONGER)


@pytest.mark.slow
def test_additional_rounds_do_not_change_the_result() -> None:
    assert verify_password("grün", STORED, STRONGER)
    assert not verify_password("grun", STORED, STRONGER)


@pytest.mark.parametrize("password", [None, ""])
def test_a_missing_password_never_matches(password: str | None) -> None:
    assert not verify_password(password, hash_password(""))


def test_a_decoy_matches_no_password() -> None:
    assert iterations_of(decoy(ITERATIONS)) == ITERATIONS
    assert iterations_of(decoy(STRONGER)) == STRONGER
    assert not verify_password("secret", decoy(ITERATIONS))
