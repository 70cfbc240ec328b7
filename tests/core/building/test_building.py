"""Building an endpoint from routine, comment and configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rowcall.core.building.endpoint_builder import (
    BuildResult,
    EndpointDefaults,
    build_endpoint,
)
from rowcall.core.building.service import RoutineOptions, ServiceOptions
from rowcall.core.catalogue.catalog import RoutineKind, Volatility
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.capabilities import CommentsMode
from rowcall.core.endpoint.endpoint import Endpoint, NullText, QueryNull, ResultPath, ValueKind
from tests.core.routines import (
    ARRAY,
    CRATE,
    EVERYTHING,
    GAUGE,
    GAUGES,
    HIDDEN,
    QUANTITY,
    STATE,
    catalog,
    endpoint,
    parameter,
    routine,
)
from tests.harness.catalogue import build_endpoints


def build(comment: str | None, defaults: EndpointDefaults | None = None) -> BuildResult:
    made = routine(comment=comment)
    return build_endpoint(made, catalog(made), defaults or EndpointDefaults())


def api_names(made: Endpoint) -> list[str]:
    return [item.api_name for item in made.parameters]


@pytest.mark.parametrize(
    ("mode", "comment", "made"),
    [
        (CommentsMode.ONLY_ANNOTATED, None, False),
        (CommentsMode.ONLY_ANNOTATED, "authorize\ninternal\npath /x", False),
        (CommentsMode.ONLY_ANNOTATED, "HTTP", True),
        (CommentsMode.ONLY_ANNOTATED, "HTTP\ndisabled", False),
        (CommentsMode.ONLY_ANNOTATED, "for procedure\nHTTP", False),
        (CommentsMode.PARSE_ALL, None, True),
        (CommentsMode.PARSE_ALL, "disabled", False),
        (CommentsMode.IGNORE, "disabled", True),
    ],
)
def test_the_comments_mode_selects_the_endpoints(mode: CommentsMode, comment: str, made: bool) -> None:
    assert (build(comment, EndpointDefaults().of_source(mode)).endpoint is not None) is made


def test_diagnostics_of_an_object_without_endpoint_are_returned() -> None:
    built = build("timeout soon")
    assert built.endpoint is None
    assert [diagnostic.object for diagnostic in built.diagnostics] == ["public.f()"]


@pytest.mark.parametrize(
    ("name", "volatility", "method"),
    [
        ("f", Volatility.VOLATILE, "POST"),
        ("f", Volatility.STABLE, "GET"),
        ("f", Volatility.IMMUTABLE, "GET"),
        ("get_it", Volatility.VOLATILE, "GET"),
        ("please_GET_it", Volatility.VOLATILE, "GET"),
        ("it_get", Volatility.VOLATILE, "GET"),
        ("getter", Volatility.VOLATILE, "POST"),
        ("budget", Volatility.VOLATILE, "POST"),
    ],
)
def test_the_automatic_method_and_transport(name: str, volatility: Volatility, method: str) -> None:
    made = endpoint(name=name, volatility=volatility)
    assert made.method == method
    assert made.options.transport is (Transport.QUERY if method == "GET" else Transport.BODY)


def test_defaults_come_from_the_configuration() -> None:
    service = ServiceOptions(
        url_path_prefix="v1",
        camel_case_names=False,
        requires_authorization=False,
        query_null=QueryNull.NULL_LITERAL,
        null_text=NullText.NO_CONTENT,
    )
    defaults = EndpointDefaults(service).of_source(CommentsMode.PARSE_ALL, nested=True)
    made = endpoint(parameter("_a_b"), defaults=defaults)
    assert (made.path, api_names(made)) == ("/v1/f", ["_a_b"])
    assert not made.options.requires_authorization
    assert (made.options.query_null, made.options.null_text) == (QueryNull.NULL_LITERAL, NullText.NO_CONTENT)
    assert made.options.nested


def test_sign_in_is_required_by_default() -> None:
    assert endpoint().options.requires_authorization


def test_prose_and_annotations_are_stored_in_the_endpoint() -> None:
    made = endpoint(comment="Adds one.\nsingle\nCareful!")
    assert (made.annotations, made.prose) == (("single",), ("Adds one.", "Careful!"))


@pytest.mark.parametrize(
    ("oid", "kind", "array"),
    [
        (21, ValueKind.SMALLINT, False),
        (23, ValueKind.INTEGER, False),
        (20 + ARRAY, ValueKind.BIGINT, True),
        (1042, ValueKind.TEXT, False),
        (3802, ValueKind.JSON, False),
        (1184, ValueKind.TIMESTAMPTZ, False),
        (869, ValueKind.OTHER, False),
        (QUANTITY, ValueKind.OTHER, False),
        (STATE, ValueKind.OTHER, False),
        (GAUGES, ValueKind.COMPOSITE, True),
        (HIDDEN, ValueKind.OTHER, False),
    ],
)
def test_types_have_the_expected_value_kind(oid: int, kind: ValueKind, array: bool) -> None:
    (item,) = endpoint(parameter("a", oid)).parameters
    assert (item.kind, item.array) == (kind, array)


def test_parameters_without_a_name_are_numbered_among_all() -> None:
    made = endpoint(parameter("a"), parameter(None), parameter("_"))
    assert api_names(made) == ["a", "$2", "$3"]
    assert made.parameters[1].db_name == "$2"


def test_a_composite_parameter_gives_one_request_parameter_for_each_attribute() -> None:
    made = endpoint(parameter("a"), parameter("_box", GAUGE), parameter(None, 25))
    assert api_names(made) == ["a", "boxId", "boxUnitCode", "$4"]
    assert [item.field for item in made.parameters] == ["a", "_box_id", "_box_unit_code", "$4"]
    assert [item.db_name for item in made.parameters] == ["a", "_box", "_box", "$4"]
    assert [item.position for item in made.parameters] == [0, 1, 1, 2]
    assert [item.kind for item in made.parameters[1:3]] == [ValueKind.INTEGER, ValueKind.TEXT]


def test_an_unnamed_composite_parameter_is_known_by_its_attributes() -> None:
    assert api_names(endpoint(parameter(None, GAUGE))) == ["id", "unitCode"]


def test_the_separator_of_composite_fields_can_be_chosen() -> None:
    service = ServiceOptions(routines=RoutineOptions(parameter_separator="."))
    defaults = EndpointDefaults(service).of_source(CommentsMode.PARSE_ALL)
    assert api_names(endpoint(parameter("_box", GAUGE), defaults=defaults))[0] == "box.id"


def test_composites_inside_composites_are_one_value() -> None:
    made = endpoint(parameter("c", CRATE))
    assert [(item.api_name, item.kind) for item in made.parameters] == [
        ("cCode", ValueKind.TEXT),
        ("cItem", ValueKind.COMPOSITE),
    ]
    assert [item.api_name for item in made.parameters[1].fields] == ["id", "unitCode"]


@pytest.mark.parametrize("segment", ["_parcelId", "{_parcel_id}", "{PARCELID}", "{parcelid?}"])
def test_path_segments_find_their_parameter_by_either_name_in_any_case(segment: str) -> None:
    made = endpoint(parameter("_parcel_id"), parameter("b"), comment=f"path /p/{segment}")
    expected = None if "{" not in segment else segment.strip("{}?").lower()
    assert [(item.path, item.segment) for item in made.parameters] == [(expected is not None, expected), (False, None)]


def test_the_api_name_is_looked_up_before_the_database_name() -> None:
    made = endpoint(parameter("id"), parameter("_id"), comment="path /{_id}/{id}")
    assert [item.segment for item in made.parameters] == ["id", "_id"]


def test_a_segment_without_a_parameter_is_a_wildcard() -> None:
    made = endpoint(parameter("a"), comment="path /x/{other}/{id:int}")
    assert not any(item.path for item in made.parameters)


def test_void_drops_the_result() -> None:
    assert endpoint(comment="void").shape.path is ResultPath.VOID


def test_a_procedure_has_the_tag_procedure() -> None:
    assert endpoint(comment="for procedure\nsingle", kind=RoutineKind.PROCEDURE).options.single


def test_parameters_that_requests_cannot_distinguish_are_reported() -> None:
    made = routine(parameter("_id"), parameter("id"))
    (diagnostic,) = build_endpoint(made, catalog(made), EVERYTHING).diagnostics
    assert diagnostic.message == "parameters _id and id share the name id in requests"


def test_all_endpoints_of_a_catalogue_are_built_in_its_order() -> None:
    result = catalog(routine(name="b"), routine(name="hidden", comment="disabled"), routine(name="a", comment="path"))
    endpoints, diagnostics = build_endpoints(result, EVERYTHING)
    assert [item.routine.name for item in endpoints] == ["b", "a"]
    assert len(diagnostics) == 1


@pytest.mark.parametrize(
    ("changes", "lines", "reported"),
    [
        ({"kind": RoutineKind.PROCEDURE}, "", "never read from a replica: procedures are not"),
        ({}, "\nupload", "never read from a replica: uploads write"),
        ({}, "\nconnection other", "never read from a replica: it runs on the connection other"),
        ({"volatility": Volatility.VOLATILE}, "", "runs a volatile routine on replicas, where every write fails"),
        ({"volatility": Volatility.STABLE}, "", None),
    ],
)
def test_read_from_replica_without_effect_is_reported(
    changes: dict[str, Any], lines: str, reported: str | None
) -> None:
    made = replace(routine(comment=f"HTTP POST\nread_from replica{lines}"), **changes)
    values = [item for item in build_endpoint(made, catalog(made), EVERYTHING).diagnostics if "replica" in item.message]
    assert [
        reported is not None and reported in item.message and item.line == "read_from replica" for item in values
    ] == [True] * (reported is not None)


def test_an_example_with_too_many_levels_is_a_warning() -> None:
    made = routine(parameter("ids", ARRAY + 23), comment="HTTP\nopenapi example ids = " + "[" * 100_000)
    (warning,) = build_endpoint(made, catalog(made), EndpointDefaults()).diagnostics
    assert "is no value of ids as JSON has it" in warning.message


@pytest.mark.parametrize("default", [True, False])
def test_headers_fill_a_parameter_with_a_default_of_the_comment(default: bool) -> None:
    comment = "HTTP\nrequest_headers parameter\nrequest_headers_parameter_name _h"
    made = routine(parameter("_h", 25), comment=comment + "\nparam _h default null" * default)
    messages = [item.message for item in build_endpoint(made, catalog(made), EndpointDefaults()).diagnostics]
    assert any("has no default" in message for message in messages) is not default
