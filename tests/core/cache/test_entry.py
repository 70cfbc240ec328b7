"""Serialization of cache entries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.cache.entry import Entry, pack_entry, unpack_entry
from rowcall.core.cache.options import endpoint_tag, profile_tag


@given(st.binary(), st.integers(0, 2**40), st.booleans(), st.floats(0, 1e12), st.binary(max_size=50))
def test_an_entry_survives_a_round_trip(body: bytes, rows: int, is_null: bool, ends: float, head: bytes) -> None:
    entry = Entry(body, rows, is_null, 1.5, ends, ends / 2, head, ("a", "b:5") if rows % 2 else ())
    assert unpack_entry(pack_entry(entry)) == entry._replace(rows=min(rows, 2**32 - 1))


@given(st.binary())
def test_invalid_entries_are_none(data: bytes) -> None:
    result = unpack_entry(data)
    assert result is None or data[0] == 3


def test_tags_with_any_names_survive_a_round_trip() -> None:
    # A quoted name of a table can contain a line end, and so can a key of the configuration.
    tags = (profile_tag("long\nlived"), endpoint_tag("GET /a\r\nb"))
    result = unpack_entry(pack_entry(Entry(b"", 1, tags=tags)))
    assert result is not None
    assert result.tags == tags
