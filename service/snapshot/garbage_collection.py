"""Python's cyclic garbage collector, kept out of the way where much plain data is made at once.

Catalogues and editions are hundreds of thousands of frozen values without a cycle among them. The collector looks
through all of them again and again while they come into being: measured with 2,000 tables, that was a third of the
time to build their endpoints and two thirds of the time to send them to a worker.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Nothing is lost: what has a cycle is found after the end. May be nested."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def keep(*, first: bool) -> None:
    """What there is now lives until an edition after this one: the collector never looks at it again, and references
    that end still free it. first: nothing can be garbage yet. To be called while it is paused, or as soon as it goes on
    it looks at everything once, and twice again when it has grown older: measured with 22,000 endpoints, 0.2 s each.
    """
    if not first:
        gc.collect()
    gc.freeze()
