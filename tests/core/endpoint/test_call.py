"""SQL of calls, for every set of present parameters."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.core.catalogue.catalog import Parameter, ParameterMode, RoutineKind
from rowcall.core.endpoint.call import UncallableError, all_present, call_sql
from tests.core.routines import ARRAY, CRATE, GAUGE, column, endpoint, parameter

VARIADIC = ParameterMode.VARIADIC


def everything(*parameters: Parameter, **changes: Any) -> str:
    made = endpoint(*parameters, **changes)
    return call_sql(made, all_present(made))


def test_a_routine_without_parameters() -> None:
    assert everything(schema="shop") == 'select "shop"."f"()'


def test_named_parameters_are_passed_by_name_and_cast() -> None:
    sql = everything(parameter("_user_id"), parameter("MyParam", 25 + ARRAY))
    assert sql == 'select "public"."f"("_user_id" => $1::integer, "MyParam" => $2::text[])'


def test_absent_parameters_are_left_out_and_the_others_numbered_without_gaps() -> None:
    made = endpoint(parameter("a", default=True), parameter("b", 25), parameter("c", default=True))
    assert call_sql(made, 0b110) == 'select "public"."f"("b" => $1::text, "c" => $2::integer)'


def test_unnamed_parameters_are_positional() -> None:
    assert everything(parameter(None), parameter(None, 25)) == 'select "public"."f"($1::integer, $2::text)'


def test_names_before_an_unnamed_parameter_are_not_used() -> None:
    sql = everything(parameter("a"), parameter(None, 25), parameter("c", 16))
    assert sql == 'select "public"."f"($1::integer, $2::text, "c" => $3::boolean)'


def test_a_trailing_unnamed_parameter_can_be_left_out() -> None:
    made = endpoint(parameter("a"), parameter(None, 25, default=True))
    assert call_sql(made, 0b01) == 'select "public"."f"("a" => $1::integer)'


def test_a_gap_before_an_unnamed_parameter_cannot_be_called() -> None:
    made = endpoint(parameter(None, default=True), parameter(None, 25, default=True))
    with pytest.raises(UncallableError):
        call_sql(made, 0b10)


def test_variadic_precedes_the_variadic_argument() -> None:
    sql = everything(parameter("a"), parameter("v", 23 + ARRAY, mode=VARIADIC))
    assert sql == 'select "public"."f"("a" => $1::integer, variadic "v" => $2::integer[])'


def test_an_absent_variadic_argument_makes_the_others_positional() -> None:
    made = endpoint(parameter("a"), parameter("v", 23 + ARRAY, default=True, mode=VARIADIC))
    assert call_sql(made, 0b01) == 'select "public"."f"($1::integer)'


def test_an_unnamed_variadic_argument_is_positional() -> None:
    sql = everything(parameter("a"), parameter(None, 23 + ARRAY, mode=VARIADIC))
    assert sql == 'select "public"."f"($1::integer, variadic $2::integer[])'


def test_a_composite_is_a_row_of_its_fields() -> None:
    sql = everything(parameter("_box", CRATE), parameter("b"))
    row = 'row($1::character(3), $2::"public"."gauge")::"shop"."crate"'
    assert sql == f'select "public"."f"("_box" => {row}, "b" => $3::integer)'


def test_absent_fields_of_a_composite_are_null() -> None:
    made = endpoint(parameter("_box", GAUGE, default=True), parameter("b"))
    row = 'row(null, $1::text)::"public"."gauge"'
    assert call_sql(made, 0b110) == f'select "public"."f"("_box" => {row}, "b" => $2::integer)'


def test_a_composite_with_no_field_present_is_a_row_of_nulls() -> None:
    made = endpoint(parameter("_box", GAUGE, default=True))
    assert call_sql(made, 0) == 'select "public"."f"("_box" => row(null, null)::"public"."gauge")'


def test_a_procedure_is_called() -> None:
    assert everything(parameter("a"), kind=RoutineKind.PROCEDURE) == 'call "public"."f"("a" => $1::integer)'


def test_pure_out_parameters_of_a_procedure_are_mentioned_as_null() -> None:
    out = parameter("b", mode=ParameterMode.OUT, argument=1)
    sql = everything(parameter("a"), parameter("c", argument=2), kind=RoutineKind.PROCEDURE, out_parameters=(out,))
    assert sql == 'call "public"."f"("a" => $1::integer, "b" => null, "c" => $2::integer)'


def test_columns_are_selected_from_the_call() -> None:
    sql = everything(returns=2249, returns_set=True, columns=(column("n"), column("Req", GAUGE)))
    assert sql == 'select "n", ("Req")."id", ("Req")."unit_code" from "public"."f"()'


def test_columns_that_set_the_response_are_copied_to_settings_behind_the_call() -> None:
    sql = everything(
        columns=(column("id"), column("code")),
        returns=2249,
        returns_set=True,
        comment="HTTP\nsingle\nresponse_status_column Code",
    )
    assert sql == (
        'select "id" from (select * from "public"."f"() offset 0 limit 1) as "f"'
        ' where ("code" is null or set_config(\'response.status\', "code"::text, true) is not null)'
    )


def test_a_column_that_the_result_lacks_sets_nothing() -> None:
    assert everything(comment="HTTP\nresponse_status_column code") == 'select "public"."f"()'


def test_a_void_annotation_drops_the_columns() -> None:
    sql = everything(returns=2249, columns=(column("n"), column("m")), comment="HTTP\nvoid")
    assert sql == 'select "public"."f"()'
