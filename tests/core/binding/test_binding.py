"""Requests and the arguments bound from them, rule by rule (routing-13 to routing-15, binding-3 to binding-26)."""

from __future__ import annotations

import pytest

from rowcall.core.binding.binding import Binder, Binding
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import QueryNull
from rowcall.core.errors.binding_error import MOST_FAULTS, BindingError
from rowcall.core.errors.refusals import Refusals
from tests.harness.parameters import TYPES, binder, faults, json_value, parameter, query_value, refusal

FIND_PARCELS = binder(parameter("zone"), parameter("since", "date", default=True))


class TestQuery:
    def test_a_missing_parameter_with_a_server_default_is_left_out(self) -> None:
        assert FIND_PARCELS.bind_query("zone=3") == Binding(0b01, [b"3"], False)

    def test_an_empty_value_of_a_type_other_than_text_is_null(self) -> None:
        assert FIND_PARCELS.bind_query("zone=3&since=") == Binding(0b11, [b"3", None], True)

    def test_a_missing_required_parameter_is_404(self) -> None:
        assert refusal(FIND_PARCELS.bind_query, "since=2026-01-01") == (404, "parameter 'zone' (integer) is required")

    def test_a_value_that_does_not_convert_is_400(self) -> None:
        assert refusal(FIND_PARCELS.bind_query, "zone=x") == (400, "parameter 'zone' (integer): 'x' is not an integer")

    def test_no_default_replaces_a_value_that_does_not_convert(self) -> None:
        assert refusal(FIND_PARCELS.bind_query, "zone=3&since=zz") == (
            400,
            "parameter 'since' (date): 'zz' is not a date",
        )

    def test_an_unknown_key_is_404_and_names_the_nearest_known_one(self) -> None:
        assert refusal(FIND_PARCELS.bind_query, "zoen=3") == (
            404,
            "unknown parameter 'zoen'; did you mean 'zone'? (and 1 more, see errors)",
        )

    def test_keys_are_compared_with_their_case(self) -> None:
        assert refusal(FIND_PARCELS.bind_query, "zone=1&ZONE=3") == (
            404,
            "unknown parameter 'ZONE'; did you mean 'zone'?",
        )

    @pytest.mark.parametrize("type_name", ["integer", "text"])
    def test_a_repeated_scalar_is_400(self, type_name: str) -> None:
        assert refusal(query_value, type_name, "x=1&x=2") == (
            400,
            f"parameter 'x' ({type_name}): takes one value, and has 2",
        )

    def test_a_repeated_array_key_gives_its_elements_in_order(self) -> None:
        assert query_value("integer[]", "x=1&x=&x=3") == b"{1,NULL,3}"

    def test_one_value_is_an_array_of_one_and_commas_do_not_split(self) -> None:
        assert query_value("text[]", "x=a,b") == b'{"a,b"}'
        assert query_value("text[]", "x={1}") == b'{"{1}"}'

    def test_array_elements_are_quoted_and_escaped(self) -> None:
        assert query_value("text[]", "x=%22%5C&x=null&x=") == rb'{"\"\\","null",""}'

    def test_boxes_are_separated_by_semicolons(self) -> None:
        assert query_value("box[]", "x=(1,2),(3,4)&x=(0,0),(1,1)") == b'{"(1,2),(3,4)";"(0,0),(1,1)"}'

    def test_a_key_without_value_is_an_empty_text(self) -> None:
        assert query_value("text", "x") == b""

    def test_escapes_and_plus_are_decoded_and_broken_escapes_preserved(self) -> None:
        assert query_value("text", "x=a+b%20%c3%A9%zz%4") == "a b é%zz%4".encode()

    @pytest.mark.parametrize("query", ["x=%ff", "%ff=1", "x=%00", "%00=1", "x=%ed%a0%80"])
    def test_a_text_that_postgresql_cannot_store_is_400(self, query: str) -> None:
        status, _ = refusal(binder(parameter("x", "text")).bind_query, query)
        assert status == 400

    def test_unnamed_parameters_are_addressed_by_number(self) -> None:
        assert binder(parameter("$1")).bind_query("$1=4").values == [b"4"]

    def test_a_default_of_an_annotation_is_bound(self) -> None:
        subject = binder(parameter("x"), parameter("y", "text"), defaults={0: "7", 1: None})
        assert subject.bind_query("") == Binding(0b11, [b"7", None], True)

    def test_details_contain_only_the_start_of_a_value(self) -> None:
        _, detail = refusal(FIND_PARCELS.bind_query, "zone=" + "x" * 10_000_000)
        assert len(detail) < 160


class TestQueryNulls:
    def test_ignore_keeps_an_empty_text(self) -> None:
        assert query_value("text", "x=") == b""

    def test_empty_string_makes_an_empty_text_null(self) -> None:
        assert query_value("text", "x=", query_null=QueryNull.EMPTY_STRING) is None

    @pytest.mark.parametrize("type_name", ["text", "integer", "jsonb"])
    def test_null_literal_converts_the_word_null(self, type_name: str) -> None:
        assert query_value(type_name, "x=NuLL", query_null=QueryNull.NULL_LITERAL) is None

    def test_null_literal_applies_to_each_element(self) -> None:
        assert query_value("text[]", "x=a&x=null", query_null=QueryNull.NULL_LITERAL) == b'{"a",NULL}'

    def test_null_literal_applies_to_path_segments(self) -> None:
        subject = binder(parameter("id", path=True), query_null=QueryNull.NULL_LITERAL)
        assert subject.bind_query("", {"id": "null"}).values == [None]


class TestPath:
    subject = binder(parameter("parcel", path=True), parameter("texts", "text[]"))

    def test_the_path_has_precedence_over_query_and_body(self) -> None:
        assert self.subject.bind_query("texts=a&parcel=8", {"parcel": "7"}).values == [b"7", b'{"a"}']
        assert self.subject.bind_body(b'{"texts":["a",null],"parcel":8}', {"parcel": "7"}).values == [
            b"7",
            b'{"a",NULL}',
        ]

    def test_a_segment_that_does_not_convert_is_always_400(self) -> None:
        wrong = (400, "parameter 'parcel' (integer): 'q' is not an integer")
        assert refusal(self.subject.bind_query, "parcel=8&texts=a", {"parcel": "q"}) == wrong
        assert refusal(self.subject.bind_body, b'{"texts":[]}', {"parcel": "q"}) == wrong
        optional = binder(parameter("parcel", path=True, default=True))
        assert refusal(optional.bind_query, "", {"parcel": "q"}) == wrong

    def test_an_omitted_optional_segment_may_come_from_the_query(self) -> None:
        assert self.subject.bind_query("parcel=8&texts=a").values == [b"8", b'{"a"}']

    @pytest.mark.parametrize("text", ["a\0b", "\ud800"])
    def test_a_text_that_postgresql_cannot_store_is_400(self, text: str) -> None:
        status, _ = refusal(binder(parameter("p", "text", path=True)).bind_query, "", {"p": text})
        assert status == 400

    def test_a_raw_body_is_passed_like_a_segment(self) -> None:
        subject = binder(parameter("parcel"), parameter("body", "text"))
        assert subject.bind_query("parcel=7", {"body": "hello {x}"}).values == [b"7", b"hello {x}"]


class TestComposites:
    fit = binder(
        parameter("boxWidth", attribute="width", default=True),
        parameter("boxUnitCode", "text", attribute="unit_code", default=True),
    )

    def test_absent_attributes_are_null_and_never_left_out(self) -> None:
        assert self.fit.bind_query("boxWidth=4") == Binding(0b11, [b"4", None], True)
        assert self.fit.bind_body(b"{}") == Binding(0b11, [None, None], True)

    def test_an_attribute_that_does_not_convert_is_400(self) -> None:
        assert refusal(self.fit.bind_query, "boxWidth=q")[0] == 400

    def test_the_name_of_a_composite_parameter_is_not_a_key(self) -> None:
        assert refusal(self.fit.bind_query, "box=1")[0] == 404


class TestBody:
    @pytest.mark.parametrize("body", [b"", b" \r\n\t", b"{}", b" { } "])
    def test_an_empty_body_is_an_empty_object(self, body: bytes) -> None:
        assert binder(parameter("x", default=True)).bind_body(body) == Binding(0, [], False)

    @pytest.mark.parametrize(
        "body",
        [
            b"[1]",
            b"null",
            b"1",
            b'{"x":1,}',
            b'{"x":1}{',
            b'{"x":1 /* */}',
            b'{"x":1,"x":2}',
            b'{"x":1,"\\u0078":2}',
            b'{"x":"\xff"}',
            b'{"x":"\\ud800"}',
            b'{"x":01}',
            b"{'x':1}",
            b'{"x":NaN}',
            b"\x00",
        ],
    )
    def test_a_body_that_is_not_one_object_is_400(self, body: bytes) -> None:
        status, _ = refusal(binder(parameter("x")).bind_body, body)
        assert status == 400

    def test_a_nul_in_a_string_is_400(self) -> None:
        status, detail = refusal(binder(parameter("x", "text")).bind_body, b'{"x":"a\\u0000"}')
        assert (status, detail) == (400, "parameter 'x' (text): the value holds a NUL character (\\u0000)")

    def test_missing_and_unknown_keys_are_404_before_a_wrong_type_is_400(self) -> None:
        subject = binder(parameter("x"), parameter("y"))
        assert refusal(subject.bind_body, b'{"x":true}')[0] == 404
        assert refusal(subject.bind_body, b'{"x":true,"y":1,"z":1}')[0] == 404
        assert refusal(subject.bind_body, b'{"x":true,"y":1}') == (
            400,
            "parameter 'x' (integer): 'true' is not an integer",
        )

    def test_a_wrong_type_is_400_even_with_a_default(self) -> None:
        assert refusal(binder(parameter("x", default=True)).bind_body, b'{"x":"zz"}')[0] == 400

    def test_null_is_null_for_every_type(self) -> None:
        assert all(json_value(type_name, "null") is None for type_name in [*TYPES, "inet", "text[]", "integer[]"])

    def test_the_transport_determines_the_source_of_values(self) -> None:
        arguments = ("x=1", b'{"x":2}')
        assert Binder([parameter("x")], Transport.QUERY, QueryNull.IGNORE).bind(*arguments).values == [b"1"]
        assert Binder([parameter("x")], Transport.BODY, QueryNull.IGNORE).bind(*arguments).values == [b"2"]

    @pytest.mark.parametrize(
        "body", [b'{"x":' + b"[" * 1000 + b"]" * 1000 + b"}", b'{"x":' * 100_000, b"[" * 10_000_000]
    )
    def test_deep_nesting_gives_an_error_and_no_crash(self, body: bytes) -> None:
        assert refusal(binder(parameter("x")).bind_body, body)[0] == 400

    @pytest.mark.slow
    def test_a_hundred_thousand_keys_get_a_response(self) -> None:
        body = b"{" + b",".join(b'"k%d":1' % number for number in range(100_000)) + b"}"
        assert refusal(binder(parameter("x")).bind_body, body) == (400, "an object has more than 2048 keys")
        query = "&".join(f"k{number}=1" for number in range(100_000))
        assert refusal(binder(parameter("x")).bind_query, query)[0] == 404

    @pytest.mark.slow
    def test_unclosed_quotes_are_handled_in_linear_time(self) -> None:
        assert refusal(binder(parameter("x")).bind_body, b'{"x":[1e400,"' + b'\\"' * 2_000_000)[0] == 400


class TestFaults:
    """Everything that is wrong with a request is reported at once, with its place."""

    def test_all_faults_are_listed(self) -> None:
        subject = binder(parameter("a"), parameter("b", "date"), parameter("c", "text"))
        assert faults(subject.bind_query, "a=x&b=2026-02-30&d=1") == (
            404,
            [
                ("d", "d", "unknown parameter 'd'"),
                ("a", "a", "parameter 'a' (integer): 'x' is not an integer"),
                ("b", "b", "parameter 'b' (date): '2026-02-30' is not a date"),
                ("c", "c", "parameter 'c' (text) is required"),
            ],
        )

    def test_places_in_arrays_and_composites_are_reported(self) -> None:
        subject = binder(parameter("pairs", "pair[]"), parameter("ids", "integer[]"))
        body = b'{"pairs":[{"n":1},{"n":"x","m":1},{"n":2,"someTexts":7}],"ids":[1,"two",3.5]}'
        assert faults(subject.bind_body, body) == (
            404,
            [
                ("pairs", "pairs[1].m", "unknown parameter 'pairs[1].m'"),
                ("pairs", "pairs[1].n", "parameter 'pairs[1].n' (integer): 'x' is not an integer"),
                ("pairs", "pairs[2].someTexts", "parameter 'pairs[2].someTexts' (text[]): '7' is not an array"),
                ("ids", "ids[1]", "parameter 'ids[1]' (integer): 'two' is not an integer"),
                ("ids", "ids[2]", "parameter 'ids[2]' (integer): '3.5' is not an integer"),
            ],
        )

    def test_the_detail_contains_the_number_of_other_faults(self) -> None:
        subject = binder(parameter("a"), parameter("b"))
        assert refusal(subject.bind_query, "a=x&b=y") == (
            400,
            "parameter 'a' (integer): 'x' is not an integer (and 1 more, see errors)",
        )

    def test_of_many_wrong_elements_only_the_first_are_listed(self) -> None:
        body = b'{"a":[' + b",".join([b'"x"'] * 100_000) + b"]}"
        status, listed = faults(binder(parameter("a", "integer[]")).bind_body, body)
        assert (status, len(listed)) == (400, MOST_FAULTS)

    def test_a_fault_can_be_reported_without_its_value(self) -> None:
        with pytest.raises(BindingError) as caught:
            binder(parameter("pin"), parameter("name", "text")).bind_query("pin=1234x")
        redacted = caught.value.without_values()
        assert redacted.detail == "parameter 'name' (text) is required (and 1 more, see errors)"
        assert [fault.message for fault in redacted.faults] == [
            "parameter 'name' (text) is required",
            "parameter 'pin': the value cannot be used",
        ]


class TestRefusals:
    @pytest.mark.parametrize("status", [400, 422])
    def test_missing_and_unknown_names_have_the_configured_status(self, status: int) -> None:
        subject = binder(parameter("a"), refusals=Refusals(absent=status))
        assert refusal(subject.bind_query, "")[0] == status
        assert refusal(subject.bind_body, b'{"a":1,"b":2}')[0] == status

    def test_unknown_parameters_can_be_ignored_in_a_query_but_not_in_a_body(self) -> None:
        subject = binder(parameter("a"), refusals=Refusals(ignores_unknown_parameters=True))
        assert subject.bind_query("utm_source=x&a=1").values == [b"1"]
        assert refusal(subject.bind_body, b'{"a":1,"utm_source":"x"}')[0] == 404

    def test_lenient_binding_uses_the_default_or_the_next_source(self) -> None:
        subject = binder(parameter("a", path=True), parameter("b", default=True), refusals=Refusals(lenient=True))
        assert subject.bind_query("a=7&b=x", {"a": "q"}) == Binding(0b01, [b"7"], False)
        assert refusal(subject.bind_query, "b=1", {"a": "q"})[0] == 404
        assert refusal(subject.bind_body, b'{"b":"x"}', {"a": "1"})[0] == 500
        assert subject.bind_query("a=1&a=2").values == [b"12"]
