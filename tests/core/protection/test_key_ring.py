"""Which key encrypts, which keys decrypt, and when the next one is due (protection-1 to protection-7)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.core.protection.key_ring import (
    ANNOUNCED,
    SECRET,
    Key,
    KeyElementError,
    KeyRing,
    element_text,
    open_plain,
    plain_secret,
    read_element,
)

DAY = 86_400.0
NOW = 1_800_000_000.0


def key(number: int, activated: float, expires: float) -> Key:
    return Key(number.to_bytes(16, "big"), activated, activated, expires, bytes(SECRET))


OLD = key(1, NOW - 100 * DAY, NOW - 10 * DAY)
CURRENT = key(2, NOW - 10 * DAY, NOW + 80 * DAY)
NEWER = key(3, NOW - 1 * DAY, NOW + 89 * DAY)
FUTURE = key(4, NOW + 80 * DAY, NOW + 170 * DAY)


def test_the_newest_active_key_encrypts() -> None:
    assert KeyRing((OLD, NEWER, CURRENT, FUTURE)).latest_active_key(NOW) is NEWER


def test_an_expired_key_decrypts_and_does_not_encrypt() -> None:
    ring = KeyRing((OLD,))
    assert ring.latest_active_key(NOW) is None
    assert ring.key(OLD.id) is OLD


@pytest.mark.parametrize("now", [NOW - 200 * DAY, NOW - 50 * DAY, NOW - 10 * DAY, NOW, NOW + 80 * DAY, NOW + 200 * DAY])
def test_the_encrypting_key_does_not_change_within_a_stable_interval(now: float) -> None:
    ring = KeyRing((OLD, NEWER, CURRENT, FUTURE))
    since, until = ring.stable_interval(now)
    assert since <= now < until
    moments = (max(since, now - DAY), (max(since, now - DAY) + min(until, now + DAY)) / 2, min(until, now + DAY) - 1)
    assert {ring.latest_active_key(moment) for moment in moments} == {ring.latest_active_key(now)}


def test_an_empty_ring_needs_a_key_immediately() -> None:
    assert KeyRing().successor_start(NOW) == NOW
    assert KeyRing((OLD, FUTURE)).successor_start(NOW) == NOW


def test_a_successor_is_created_before_the_key_expires() -> None:
    ring = KeyRing((CURRENT,))
    assert ring.successor_start(NOW) is None
    assert ring.successor_start(CURRENT.expires - ANNOUNCED + 1) == CURRENT.expires
    assert KeyRing((CURRENT, FUTURE)).successor_start(CURRENT.expires - 1) is None


def test_the_ring_is_checked_daily_and_when_a_key_is_due() -> None:
    ring = KeyRing((CURRENT, FUTURE))
    assert ring.next_read_time(NOW) == NOW + DAY
    due = CURRENT.expires - ANNOUNCED
    assert ring.next_read_time(due - 60) == due
    assert ring.next_read_time(due + 60) == due + 60 + DAY
    assert ring.next_read_time(CURRENT.expires - 60) == CURRENT.expires
    assert KeyRing().next_read_time(NOW) == NOW


@settings(deadline=None)
@given(st.floats(0, 400), st.integers(1, 200))
def test_a_renewed_ring_always_has_an_active_key(days: float, lifetime: int) -> None:
    """If it is checked when it says so, and a key is created when one is due."""
    now, end = NOW, NOW + days * DAY
    ring = KeyRing()
    number = 1
    while now < end:
        start = ring.successor_start(now)
        if start is not None:
            ring = ring.with_keys([key(number, start, start + lifetime * DAY)])
            number += 1
        assert ring.latest_active_key(now) is not None
        later = ring.next_read_time(now)
        assert later > now
        assert ring.latest_active_key(later - 1) is not None
        now = later


def test_merging_rings_drops_no_key() -> None:
    assert KeyRing((OLD, CURRENT)).with_keys([NEWER]).keys == (OLD, CURRENT, NEWER)


def test_a_key_survives_serialization() -> None:
    made = Key(b"i" * 16, 1.5, 2.5, 3.5, b"s" * SECRET, "AES_128_CBC", "HMACSHA512")
    stored = read_element(element_text(made, plain_secret(made.secret)))
    assert stored.with_secret(open_plain(stored.secret)) == made


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format":"rowcall-key-1"}',
        '<key id="1"/>',
        element_text(OLD, {}).replace("AES_256_GCM", "XOR"),
    ],
)
def test_invalid_elements(text: str) -> None:
    with pytest.raises(KeyElementError):
        read_element(text)


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(KeyElementError):
        read_element(element_text(OLD, {})).with_secret(b"short")


def test_a_secret_is_not_shown() -> None:
    made = Key(b"i" * 16, 1, 2, 3, b"hush" * 16)
    assert "hush" not in repr(made)
    assert "hush" not in repr(KeyRing((made,)))
