"""The output buffer and JSON escaping (RFC 8259, 7)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.ext.base.buffer import Buffer, escape
from tests.ext.twins.values import json_string
from tests.harness.effort import examples

CHARACTERS = st.characters(exclude_categories=["Cs"])


def test_a_new_buffer_is_empty() -> None:
    buffer = Buffer()
    assert len(buffer) == 0
    assert buffer.take() == b""


def test_take_returns_the_written_bytes_and_empties_the_buffer() -> None:
    buffer = Buffer()
    buffer.write(b"one")
    buffer.write(b"two")
    assert len(buffer) == 6
    assert buffer.take() == b"onetwo"
    assert len(buffer) == 0


def test_a_cleared_buffer_can_be_written_again() -> None:
    buffer = Buffer()
    buffer.write(b"x" * 3_000_000)
    buffer.clear()
    buffer.write(b"y")
    assert buffer.take() == b"y"


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 4095, 4096, 4097, 10_000])
def test_a_special_byte_is_escaped_at_every_position(size: int) -> None:
    for special in ('"', "\\", "\n", "\x1f"):
        for place in {0, size // 2, max(size - 1, 0)}:
            text = "a" * place + special + "é" * (size - place)
            assert escape(text.encode()).decode() == json_string(text)[1:-1]


def test_bytes_that_need_no_escape_are_unchanged() -> None:
    passing = bytes(byte for byte in range(0x20, 0x100) if byte not in b'"\\')
    assert escape(passing) == passing


@given(st.text(CHARACTERS, max_size=200))
@settings(max_examples=examples(300), deadline=None)
def test_escaped_text_means_the_same(text: str) -> None:
    escaped = escape(text.encode()).decode()
    assert json.loads(f'"{escaped}"') == text
    assert escaped == json_string(text)[1:-1]
