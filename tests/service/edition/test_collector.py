"""The collector rests while much is made, and works again behind it, whatever happened."""

from __future__ import annotations

import gc

import pytest

from rowcall.service.edition.collector import paused


def test_the_collector_rests_and_works_again() -> None:
    with paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_only_the_outer_pause_ends_it() -> None:
    with paused():
        with paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_ends_the_pause_too() -> None:
    with pytest.raises(ValueError, match="broken"), paused():
        raise ValueError("broken")
    assert gc.isenabled()
