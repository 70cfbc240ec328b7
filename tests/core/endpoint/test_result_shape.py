"""The return shape matrix of rendering-9 to rendering-13."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.endpoint.endpoint import ResultPath, ResultShape
from rowcall.core.endpoint.result_shape import BYTES, JSON, TEXT, result_shape
from tests.core.routines import (
    ARRAY,
    CRATE,
    DOCUMENT,
    FLAG_BOX,
    GAUGE,
    GAUGES,
    HIDDEN,
    QUANTITY,
    TYPES,
    column,
    routine,
)


def shape_of(**changes: Any) -> ResultShape:
    return result_shape(routine(**changes), TYPES, camel=True)


def keys(shape: ResultShape) -> list[str]:
    return [item.key.decode() for item in shape.columns]


@pytest.mark.parametrize(
    "changes",
    [{"returns": 2278}, {"returns": 2278, "returns_set": True}, {"kind": RoutineKind.PROCEDURE, "returns": 2249}],
)
def test_void_functions_and_all_procedures_return_nothing(changes: dict[str, Any]) -> None:
    assert shape_of(**changes).path is ResultPath.VOID


@pytest.mark.parametrize(
    ("oid", "content_type"),
    [
        (23, TEXT),
        (16, TEXT),
        (QUANTITY, TEXT),
        (114, JSON),
        (3802, JSON),
        (DOCUMENT, JSON),
        (25 + ARRAY, JSON),
        (GAUGES, JSON),
        (17 + ARRAY, JSON),
        (17, BYTES),
    ],
)
def test_one_value_is_a_scalar(oid: int, content_type: str) -> None:
    shape = shape_of(returns=oid)
    assert (shape.path, shape.content_type, shape.columns) == (ResultPath.SCALAR, content_type, ())


def test_one_scalar_out_parameter_is_a_scalar() -> None:
    assert shape_of(returns=23, columns=(column("r"),)).path is ResultPath.SCALAR


@pytest.mark.parametrize(
    ("changes", "is_set", "named", "expected"),
    [
        ({"returns": 2249, "columns": (column("a_b"), column("MyCol", 25))}, False, True, ["aB", "MyCol"]),
        ({"returns": GAUGE, "columns": (column("id"), column("unit_code", 25)), "returns_composite": True}, False, True,
         ["id", "unitCode"]),
        ({"returns": FLAG_BOX, "columns": (column("is_on", 16),), "returns_composite": True}, False, True, ["isOn"]),
        ({"returns": 2249}, False, False, []),
        ({"returns": 2249, "columns": (column("r", 2249),)}, False, False, []),
        ({"returns": 23, "returns_set": True}, True, False, []),
        ({"returns": 114, "returns_set": True}, True, False, []),
        ({"returns": 25 + ARRAY, "returns_set": True}, True, False, []),
        ({"returns": 2249, "returns_set": True}, True, False, []),
        ({"returns": 2249, "returns_set": True, "columns": (column("col_a"), column("b"))}, True, True, ["colA", "b"]),
        ({"returns": 25, "returns_set": True, "columns": (column("val", 25),)}, True, True, ["val"]),
        ({"returns": FLAG_BOX, "returns_set": True, "columns": (column("is_on", 16),), "returns_composite": True}, True,
         True, ["isOn"]),
        ({"returns": GAUGE, "columns": (column("c", GAUGE),)}, False, True, ["id", "unitCode"]),
        ({"returns": GAUGE, "returns_set": True, "columns": (column("c", GAUGE),)}, True, True, ["id", "unitCode"]),
        ({"returns": 2249, "columns": (column("n"), column("c", GAUGE), column("id", 25))}, False, True,
         ["n", "id", "unitCode", "id"]),
    ],
)  # fmt: skip
def test_results_with_columns_are_rows(changes: dict[str, Any], is_set: bool, named: bool, expected: list[str]) -> None:
    shape = shape_of(**changes)
    assert (shape.path, shape.is_set, shape.named) == (ResultPath.ROWS, is_set, named)
    assert (keys(shape), shape.content_type) == (expected, JSON)


@pytest.mark.parametrize(
    "changes",
    [{"returns": 17, "returns_set": True}, {"returns": 17, "returns_set": True, "columns": (column("b", 17),)}],
)
def test_rows_of_a_single_bytea_are_bytes(changes: dict[str, Any]) -> None:
    assert shape_of(**changes).content_type == BYTES


def test_fields_refer_to_their_composite() -> None:
    shape = shape_of(returns=2249, columns=(column("n"), column("c", GAUGE)))
    assert [item.group and item.group.name for item in shape.columns] == [None, "c", "c"]


def test_a_composite_that_is_not_resolved_stays_one_column() -> None:
    shape = shape_of(returns=2249, columns=(column("n"), column("c", HIDDEN)))
    assert [item.expression for item in shape.columns] == ['"n"', '"c"']


def expressions(nested: bool, resolve_nested: bool, **changes: Any) -> list[str]:
    shape = result_shape(routine(**changes), TYPES, camel=True, nested=nested, resolve_nested=resolve_nested)
    return [item.expression for item in shape.columns]


def test_nested_composites_stay_one_column() -> None:
    columns = (column("n"), column("c", GAUGE))
    assert expressions(True, True, returns=2249, columns=columns) == ['"n"', '"c"']


def test_a_lone_nested_composite_is_reassembled() -> None:
    expected = ['("f".*)::"public"."gauge"']
    assert expressions(True, True, returns=GAUGE, columns=(column("c", GAUGE),)) == expected


@pytest.mark.parametrize("nested", [True, False])
def test_a_composite_returned_directly_is_flat(nested: bool) -> None:
    columns = (column("id"), column("unit_code", 25))
    shape = result_shape(
        routine(returns=GAUGE, columns=columns, returns_composite=True), TYPES, camel=True, nested=nested
    )
    assert (keys(shape), shape.blank_is_null) == (["id", "unitCode"], False)


def test_unresolved_composites_inside_composites_are_selected_as_text() -> None:
    columns = (column("n"), column("c", CRATE))
    assert expressions(False, False, returns=2249, columns=columns) == ['"n"', '("c")."code"', '("c")."item"::text']
    direct = (column("item", GAUGE), column("items", GAUGES))
    assert expressions(False, False, returns=CRATE, columns=direct, returns_composite=True) == [
        '"item"::text',
        '"items"::text[]',
    ]
