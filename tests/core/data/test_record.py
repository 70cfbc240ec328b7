"""Pickling of values for other processes."""

from __future__ import annotations

import pickle

from tests.core.routines import GAUGE, TYPES, column, endpoint, parameter


def test_an_endpoint_survives_pickling() -> None:
    made = endpoint(
        parameter("_a"), parameter("b", GAUGE), returns=GAUGE, columns=(column("c", GAUGE),), comment="HTTP\nX-A: b"
    )
    assert pickle.loads(pickle.dumps(made)) == made


def test_types_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps(TYPES)) == TYPES
