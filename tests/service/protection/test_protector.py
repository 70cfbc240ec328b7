"""Sealed texts: nothing opens that was changed, cut, or sealed for something else."""

from __future__ import annotations

import base64
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.protection.key_ring import ALGORITHMS, SECRET, Key, KeyRing
from rowcall.service.protection.errors import NoKeyError, SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys, Protector

EVERY = [(algorithm, validation) for algorithm in ALGORITHMS for validation in ("HMACSHA256", "HMACSHA512")]


def key(algorithm: str = "AES_256_GCM", validation: str = "HMACSHA256", age: float = 0.0) -> Key:
    now = time.time() - age
    return Key(os.urandom(16), now - 1, now - 1, now + 1000, os.urandom(SECRET), algorithm, validation)


def keys(*made: Key, application: str = "yard") -> Keys:
    ring = Keys(application)
    ring.ring = KeyRing(made)
    return ring


@pytest.mark.parametrize(("algorithm", "validation"), EVERY)
def test_encrypted_data_can_be_decrypted(algorithm: str, validation: str) -> None:
    protector = Protector(keys(key(algorithm, validation)), "purpose")
    for data in (b"", b"x", b"0123456789abcdef", os.urandom(1000)):
        assert protector.open(protector.seal(data)) == data


@pytest.mark.parametrize(("algorithm", "validation"), EVERY)
def test_every_changed_character_is_detected(algorithm: str, validation: str) -> None:
    protector = Protector(keys(key(algorithm, validation)), "purpose")
    sealed = protector.seal(b"claims")
    for position, character in enumerate(sealed):
        changed = sealed[:position] + ("A" if character != "A" else "B") + sealed[position + 1 :]
        with pytest.raises(SealError):
            protector.open(changed)


def test_every_truncation_and_extension_is_detected() -> None:
    protector = Protector(keys(key()), "purpose")
    sealed = protector.seal(b"claims")
    for size in range(len(sealed)):
        with pytest.raises(SealError):
            protector.open(sealed[:size])
    for longer in (sealed + "A", sealed + "=", sealed + "AAAA", " " + sealed):
        with pytest.raises(SealError):
            protector.open(longer)


def test_another_encoding_of_the_same_bytes_is_refused() -> None:
    """The last character of base64 may hold bits that mean nothing."""
    protector = Protector(keys(key()), "purpose")
    sealed = next(text for text in (protector.seal(b"x" * size) for size in range(3)) if len(text) % 4)
    raw = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [sealed[:-1] + character for character in alphabet if character != sealed[-1]]
    same = [text for text in others if base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) == raw]
    assert same
    for text in same:
        with pytest.raises(SealError):
            protector.open(text)


@pytest.mark.slow
@given(st.text(max_size=200))
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(SealError):
        Protector(keys(key()), "purpose").open(text)


def test_data_is_decrypted_only_for_its_purpose() -> None:
    ring = keys(key())
    with pytest.raises(SealError):
        Protector(ring, "refresh").open(Protector(ring, "access").seal(b"claims"))


def test_data_is_decrypted_only_by_its_application() -> None:
    made = key()
    sealed = Protector(keys(made, application="yard"), "purpose").seal(b"claims")
    with pytest.raises(SealError):
        Protector(keys(made, application="till"), "purpose").open(sealed)


def test_data_of_a_rotated_key_can_be_decrypted() -> None:
    old, new = key(age=10_000), key()
    sealed = Protector(keys(key(age=0), application="x"), "p").seal(b"")
    with pytest.raises(UnknownKeyError):
        Protector(keys(new), "p").open(sealed)
    protecting = keys(Key(old.id, old.created, old.activated, time.time() + 1, old.secret))
    sealed = Protector(protecting, "purpose").seal(b"claims")
    assert Protector(keys(old, new), "purpose").open(sealed) == b"claims"


def test_equal_texts_are_encrypted_differently() -> None:
    protector = Protector(keys(key()), "purpose")
    assert protector.seal(b"claims") != protector.seal(b"claims")


def test_an_empty_ring_cannot_encrypt() -> None:
    with pytest.raises(NoKeyError):
        Protector(keys(), "purpose").seal(b"claims")


@pytest.mark.parametrize("age", [10_000, -10_000], ids=["expired", "not active yet"])
def test_without_an_active_key_any_key_encrypts_and_a_new_one_is_requested(age: int) -> None:
    """Clocks step. What is sealed meanwhile opens whenever the key is known."""
    ring = keys(key(age=age))
    requested: list[bool] = []
    ring.on_unknown = lambda: requested.append(True)
    protector = Protector(ring, "purpose")
    assert protector.open(protector.seal(b"claims")) == b"claims"
    assert requested == [True]


def test_the_ring_is_replaced_as_a_whole() -> None:
    first, second = key(age=10), key()
    ring = keys(first)
    protector = Protector(ring, "purpose")
    sealed = protector.seal(b"claims")
    ring.ring = KeyRing((first, second))
    later = protector.seal(b"claims")
    assert (protector.open(sealed), protector.open(later)) == (b"claims", b"claims")
    ring.ring = KeyRing((second,))
    assert protector.open(later) == b"claims"
    with pytest.raises(UnknownKeyError):
        protector.open(sealed)
