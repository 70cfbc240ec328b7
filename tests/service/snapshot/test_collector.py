"""The collector rests while much is made, and works again behind it, whatever happened."""

from __future__ import annotations

import gc
import weakref

import pytest

from rowcall.service.snapshot.garbage_collection import keep, pause_collection


def test_garbage_collection_is_paused_and_resumed() -> None:
    with pause_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_nested_pause_does_not_resume_collection() -> None:
    with pause_collection():
        with pause_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_resumes_collection() -> None:
    with pytest.raises(ValueError, match="broken"), pause_collection():
        raise ValueError("broken")
    assert gc.isenabled()


@pytest.mark.slow
def test_long_lived_objects_are_frozen_and_garbage_is_collected() -> None:
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
