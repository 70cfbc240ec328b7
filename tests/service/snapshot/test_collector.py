"""The collector rests while much is made, and works again behind it, whatever happened."""

from __future__ import annotations

import gc
import weakref

import pytest

from rowcall.service.snapshot.garbage_collection import keep, pause_collection


def test_the_collector_rests_and_works_again() -> None:
    with pause_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_only_the_outer_pause_ends_it() -> None:
    with pause_collection():
        with pause_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_ends_the_pause_too() -> None:
    with pytest.raises(ValueError, match="broken"), pause_collection():
        raise ValueError("broken")
    assert gc.isenabled()


@pytest.mark.slow
def test_what_is_kept_is_not_looked_at_again_and_garbage_is_not_kept() -> None:
    class Ring:
        def __init__(self) -> None:
            self.ring = self

    stored = Ring()
    mark = weakref.ref(Ring())
    try:
        with pause_collection():
            keep(first=False)
            assert mark() is None
            assert not any(item is stored for item in gc.get_objects())
    finally:
        gc.unfreeze()
    assert any(item is stored for item in gc.get_objects())
