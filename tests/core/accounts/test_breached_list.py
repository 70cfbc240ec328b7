"""Look-up in a list of breached passwords: for all lists, the binary search says the same as reading all lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.accounts.breached_list import SAMPLES, BreachedListError, Read, contains, digest, file_fault

HASHES = st.text("0123456789ABCDEF", min_size=40, max_size=40) | st.sampled_from(["0" * 40, "F" * 40])
ENDS = st.sampled_from(["\n", "\r\n"])


def reader(data: bytes) -> Read:
    return lambda offset, count: data[offset : offset + count]


def listed(hashes: list[str], end: str, counts: list[int], *, last_end: bool) -> bytes:
    lines = [f"{item}:{counts[number % len(counts)]}" for number, item in enumerate(sorted(hashes))]
    return (end.join(lines) + (end if last_end else "")).encode()


@given(
    hashes=st.lists(HASHES, min_size=1, max_size=60, unique=True),
    others=st.lists(HASHES, max_size=10),
    end=ENDS,
    counts=st.lists(st.integers(1, 10**11), min_size=1, max_size=5),
    last_end=st.booleans(),
    lower=st.booleans(),
)
def test_the_search_finds_exactly_the_listed_hashes(
    hashes: list[str], others: list[str], end: str, counts: list[int], last_end: bool, lower: bool
) -> None:
    data = listed(hashes, end, counts, last_end=last_end)
    data = data.lower() if lower else data
    assert file_fault(reader(data), len(data)) is None
    for item in (*hashes, *others):
        assert contains(reader(data), len(data), item.encode()) is (item in hashes)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_valid_list_or_reported(data: bytes) -> None:
    wrong = file_fault(reader(data), len(data))
    try:
        found = contains(reader(data), len(data), digest("password"))
    except BreachedListError:
        assert wrong is not None
    else:
        assert not found


@given(st.lists(HASHES, min_size=2, max_size=20, unique=True), st.data())
def test_two_lines_in_the_wrong_order_are_found(hashes: list[str], data: st.DataObject) -> None:
    lines = sorted(hashes)
    place = data.draw(st.integers(0, len(lines) - 2))
    lines[place], lines[place + 1] = lines[place + 1], lines[place]
    text = "".join(f"{item}:1\n" for item in lines).encode()
    expected = f"it is not sorted by hash: the line at byte {(place + 1) * 43} is lower than one before it"
    assert file_fault(reader(text), len(text)) == expected


def test_a_long_list_is_examined_by_samples() -> None:
    lines = [f"{number:040X}:{number % 7 + 1}\r\n".encode() for number in range(0, 10**9, 20_000)]
    data = b"".join(lines)
    reads = []

    def read(offset: int, count: int) -> bytes:
        reads.append(count)
        return data[offset : offset + count]

    assert file_fault(read, len(data)) is None
    assert len(reads) == SAMPLES + 1
    assert max(reads) <= 128
    by_count = b"".join(reversed(lines))
    assert "not sorted by hash" in (file_fault(reader(by_count), len(by_count)) or "")
    reads.clear()
    assert contains(read, len(data), f"{40_000:040X}".encode())
    assert not contains(read, len(data), f"{40_001:040X}".encode())
    assert sum(reads) < 64 * 128


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"password\n123456\n", "the line at byte 0 is not `HASH:COUNT`"),
        (b"0" * 32 + b":5\n", "the line at byte 0 is not `HASH:COUNT`"),
        (b"0" * 40 + b":5\n\n" + b"1" * 40 + b":5\n", "the line at byte 43 is not `HASH:COUNT`"),
        (b"0" * 40 + b":5\n" + b"G" * 40 + b":5\n", "the line at byte 43 is not `HASH:COUNT`"),
    ],
)
def test_malformed_lists_are_reported(data: bytes, reason: str) -> None:
    assert (file_fault(reader(data), len(data)) or "").startswith(reason)


def test_a_password_is_digested_with_sha1_in_hexadecimal() -> None:
    assert digest("password") == b"5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8"
