"""Two different requests never have the same key (reference 05, 1.3)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.cache.entry import Entry, packed, unpacked
from rowcall.core.cache.key import encode_key

TRICKY = st.sampled_from([b"", b"-", b"1:", b"NULL", b"\x1f"])
VALUES = st.lists(st.one_of(st.just("absent"), st.none(), st.binary(max_size=6), TRICKY), max_size=5)


def key(values: list[object]) -> bytes:
    mask = sum(1 << index for index, value in enumerate(values) if value != "absent")
    arguments = [value for value in values if value != "absent"]
    return encode_key(b"p", mask, arguments, (1 << 8) - 1)  # type: ignore[arg-type]


def meant(values: list[object]) -> list[object]:
    """Without what was left out at the end: that is no difference."""
    while values and values[-1] == "absent":
        values = values[:-1]
    return values


@given(VALUES, VALUES)
def test_keys_are_equal_exactly_when_requests_are(one: list[object], other: list[object]) -> None:
    assert (key(one) == key(other)) == (meant(one) == meant(other))


@given(VALUES, st.integers(0, 31))
def test_only_what_is_wanted_counts(values: list[object], wanted: int) -> None:
    mask = sum(1 << index for index, value in enumerate(values) if value != "absent")
    arguments = [value for value in values if value != "absent"]
    left = [value if wanted >> index & 1 else "absent" for index, value in enumerate(values)]
    assert encode_key(b"p", mask, arguments, wanted) == key(left)  # type: ignore[arg-type]


@given(st.binary(), st.integers(0, 2**40), st.booleans(), st.floats(0, 1e12), st.binary(max_size=50))
def test_an_entry_survives_the_way_to_bytes_and_back(
    body: bytes, rows: int, is_null: bool, ends: float, head: bytes
) -> None:
    entry = Entry(body, rows, is_null, 1.5, ends, ends / 2, head, ("a", "b:5") if rows % 2 else ())
    assert unpacked(packed(entry)) == entry._replace(rows=min(rows, 2**32 - 1))


@given(st.binary())
def test_what_is_no_entry_is_none(data: bytes) -> None:
    found = unpacked(data)
    assert found is None or data[0] == 3
