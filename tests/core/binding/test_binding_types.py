"""Binding of texts and JSON values to each type, and values that are refused (binding-7 to binding-12)."""

from __future__ import annotations

import time

import pytest

from tests.harness.parameters import binder, json_value, parameter, query_value, refusal


class TestJsonValues:
    @pytest.mark.parametrize("number", ["1.50", "12345678901234567890", "1e400", "-0.0", "1E+2"])
    def test_digits_of_numbers_are_preserved(self, number: str) -> None:
        for type_name in ("numeric", "text", "jsonb", "inet"):
            assert json_value(type_name, number) == number.encode()

    @pytest.mark.parametrize(
        ("type_name", "text"),
        [
            ("integer", "1.0"),
            ("integer", "1e2"),
            ("integer", "2147483648"),
            ("integer", '"x"'),
            ("integer", '""'),
            ("integer", "{}"),
            ("integer", "[1]"),
            ("double precision", "1e400"),
            ("real", "3.5e38"),
            ("boolean", "1"),
            ("boolean", '"t"'),
            ("uuid", "1"),
            ("date", "20260101"),
            ("date", "true"),
            ("text[]", '"a"'),
            ("text[]", "{}"),
            ("integer[]", "[[1],[2,3]]"),
            ("integer[]", "[[1],2]"),
            ("integer[]", "[[1],null]"),
            ("integer[]", "[true]"),
            ("integer[]", "[[[[[[[1]]]]]]]"),
        ],
    )
    def test_a_value_of_the_wrong_type_is_400(self, type_name: str, text: str) -> None:
        assert refusal(json_value, type_name, text)[0] == 400

    @pytest.mark.parametrize(
        ("type_name", "text", "bound"),
        [
            ("boolean", "true", "true"),
            ("boolean", '"TRUE"', "true"),
            ("text", "true", "true"),
            ("jsonb", "false", "false"),
            ("integer", '" 7 "', "7"),
            ("text", r'"a\n\ud83d\ude00\u00e9\/"', "a\n😀é/"),
            ("jsonb", r'"{\"k\":1}"', '{"k":1}'),
            ("jsonb", '{ "k" : 1.50 }', '{ "k" : 1.50 }'),
            ("text", '["a", 1]', '["a", 1]'),
            ("double precision", '"NaN"', "NaN"),
            ("integer[]", "[ 1 , null,3 ]", "{1,NULL,3}"),
            ("integer[]", "[]", "{}"),
            ("integer[]", "[[],[]]", "{}"),
            ("integer[]", "[[1,2],[3,null]]", "{{1,2},{3,NULL}}"),
            ("text[]", r'["a\"b", "\\", 1.50]', r'{"a\"b","\\","1.50"}'),
            ("json[]", '[{"a":[1]},[2],null,"3"]', r'{"{\"a\":[1]}","[2]",NULL,"3"}'),
            ("inet", '"::1"', "::1"),
            ("inet", '""', ""),
            ("date[]", '["2026-01-01T23:00:00-02:00"]', '{"2026-01-02"}'),
        ],
    )
    def test_values_are_bound_as_postgresql_reads_them(self, type_name: str, text: str, bound: str) -> None:
        assert json_value(type_name, text) == bound.encode()


class TestTypes:
    @pytest.mark.parametrize(
        ("type_name", "text", "bound"),
        [
            ("smallint", "-32768", "-32768"),
            ("integer", "%20+7+", "7"),
            ("bigint", "9223372036854775807", "9223372036854775807"),
            ("integer", "%2B7", "+7"),
            ("integer", "0000000000000000000000000007", "0000000000000000000000000007"),
            ("integer", "-0", "-0"),
            ("numeric", "1,234,567.50", "1234567.50"),
            ("numeric", ".5", ".5"),
            ("numeric", "NaN", "NaN"),
            ("double precision", "-Infinity", "-Infinity"),
            ("double precision", "1,000e2", "1000e2"),
            ("double precision", "0e-999", "0e-999"),
            ("real", "1e-45", "1e-45"),
            ("boolean", "True", "true"),
            ("uuid", "{A0EEBC99-9C0B4EF8BB6D-6BB9BD380A11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            ("timestamp with time zone", "2026-03-01T10:00:00", "2026-03-01 10:00:00+00"),
            ("timestamp with time zone", "2026-03-01T10:00:00.123456%2B02:00", "2026-03-01 10:00:00.123456+02"),
            ("timestamp with time zone", "2026-03-01 10:00 Europe/Rome", "2026-03-01 10:00:00 Europe/Rome"),
            ("timestamp with time zone", "infinity", "infinity"),
            ("timestamp without time zone", "2026-03-01T10:00:00%2B02:00", "2026-03-01 08:00:00"),
            ("timestamp without time zone", "2026-03-01T10:00:00.1234567Z", "2026-03-01 10:00:00.1234567"),
            ("timestamp without time zone", "Sun, 01 Mar 2026 10:00:00 GMT", "2026-03-01 10:00:00"),
            ("timestamp without time zone", "3/1/2026 1:05 PM", "2026-03-01 13:05:00"),
            ("timestamp without time zone", "0001-01-01T00:00:00%2B01", "0001-12-31 23:00:00 BC"),
            ("timestamp without time zone", "0044-03-15 10:00:00 BC", "0044-03-15 10:00:00 BC"),
            ("date", "2026-03-01", "2026-03-01"),
            ("date", "2026-03-01T23:30:00-02:00", "2026-03-02"),
            ("date", "March 1, 2026", "2026-03-01"),
            ("date", "2024-02-29", "2024-02-29"),
            ("date", "20260301", "2026-03-01"),
            ("time without time zone", "10:00%2B02:00", "08:00:00"),
            ("time without time zone", "24:00:00", "24:00:00"),
            ("time without time zone", "2026-03-01T10:00:00Z", "10:00:00"),
            ("time without time zone", "1:30 am", "01:30:00"),
            ("time with time zone", "10:00:00.5", "10:00:00.5+00"),
            ("time with time zone", "01:00%2B02:00", "23:00:00+00"),
            ("inet", "anything", "anything"),
        ],
    )
    def test_valid_texts_are_bound(self, type_name: str, text: str, bound: str) -> None:
        assert query_value(type_name, f"x={text}") == bound.encode()

    @pytest.mark.parametrize(
        ("type_name", "text"),
        [
            ("smallint", "32768"),
            ("integer", "-2147483649"),
            ("bigint", "9223372036854775808"),
            ("integer", "1" * 100_000),
            ("integer", "-"),
            ("integer", "1,000"),
            ("integer", "0x10"),
            ("integer", "1_000"),
            ("integer", "٣"),
            ("integer", "1.0"),
            ("integer", "%20"),
            ("numeric", "1.2.3"),
            ("numeric", "1.2,3"),
            ("numeric", ",1"),
            ("numeric", "."),
            ("numeric", "e5"),
            ("numeric", "9" * 200_000),
            ("double precision", "1e400"),
            ("double precision", "1e-400"),
            ("real", "3.5e38"),
            ("real", "1e-60"),
            ("real", "infinit"),
            ("boolean", "t"),
            ("boolean", "1"),
            ("boolean", "yes"),
            ("uuid", "a0eebc99"),
            ("uuid", "{a0eebc999c0b4ef8bb6d6bb9bd380a11"),
            ("date", "zz"),
            ("date", "2026-02-30"),
            ("date", "2026-13-01"),
            ("date", "0000-01-01"),
            ("date", "10:00"),
            ("date", "2026-01-01x"),
            ("date", "2026-01-01%20" + "0" * 1000),
            ("date", "9999999-01-01"),
            ("timestamp without time zone", "300000-01-01"),
            ("timestamp without time zone", "2026-03-01 25:00"),
            ("timestamp without time zone", "2026-03-01 10:60"),
            ("timestamp without time zone", "2026-03-01 24:00:01"),
            ("timestamp without time zone", "2026-03-01 10:00 Europe/Rome"),
            ("timestamp with time zone", "2026-03-01 10:00%2B16"),
            ("timestamp with time zone", "2026-03-01 13:00 PM"),
            ("time without time zone", "2026-03-01"),
            ("time without time zone", "10"),
        ],
    )
    def test_invalid_texts_are_refused(self, type_name: str, text: str) -> None:
        assert refusal(query_value, type_name, f"x={text}")[0] == 400


def test_without_the_utc_rule_a_naive_time_is_in_the_time_zone_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        zoned = binder(parameter("x", "timestamp with time zone"), timestamps_utc=False)
        assert zoned.bind_query("x=2026-03-01T10:00:00").values == [b"2026-03-01 10:00:00+05:30"]
        plain = binder(parameter("x", "timestamp without time zone"), timestamps_utc=False)
        assert plain.bind_query("x=2026-03-01T10:00:00Z").values == [b"2026-03-01 15:30:00"]
    finally:
        monkeypatch.undo()
        time.tzset()
