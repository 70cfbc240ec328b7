"""An endpoint whose protective annotation cannot be applied is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rowcall.core.building.endpoint_builder import build_endpoint
from rowcall.core.building.known_names import KnownNames
from tests.core.routines import EVERYTHING, catalog, parameter, routine


@pytest.mark.parametrize(
    ("line", "served"),
    [
        ("parameter_hash _password", True),
        ("parameter_hash pasword", False),
    ],
)
def test_a_hash_of_an_unknown_parameter(line: str, served: bool) -> None:
    made = routine(parameter("_password", 25), comment=f"HTTP POST\n{line}")
    built = build_endpoint(made, catalog(made), EVERYTHING)
    assert (built.endpoint is not None) == served
    told = [one.message for one in built.diagnostics if one.left_out]
    assert [message for message in told if "pasword in parameter_hash is no parameter" in message] == told
    assert bool(told) != served


@pytest.mark.parametrize(
    "line",
    [
        "validate pasword using required",
        "validate _password using nonsense",
    ],
)
def test_a_line_that_cannot_protect_leaves_the_endpoint_out(line: str) -> None:
    made = routine(parameter("_password", 25), comment=f"HTTP POST\n{line}")
    known = replace(EVERYTHING, known=KnownNames(rules=frozenset({"required"})))
    built = build_endpoint(made, catalog(made), known)
    assert built.endpoint is None
    assert sum(one.left_out for one in built.diagnostics) >= 1
