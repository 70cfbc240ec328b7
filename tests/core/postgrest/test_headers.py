"""Headers of PostgREST's interface: Prefer, Range, Content-Range, Accept, and the body of errors."""

from __future__ import annotations

import orjson
import pytest

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.request import ranges
from rowcall.core.postgrest.request.media_types import parse_accept
from rowcall.core.postgrest.request.preferences import Preferences, parse_preferences, preference_applied
from rowcall.core.postgrest.request.tree import Range
from rowcall.core.postgrest.response_headers import set_by_sql, status_by_sql


def test_preferences_of_several_headers_are_merged_and_the_first_counts() -> None:
    result = parse_preferences(["return=representation, count=exact", "return=minimal , max-affected=3,timezone=-4"])
    assert result == Preferences(returning="representation", count="exact", max_affected=3, timezone="-4")


@pytest.mark.parametrize(
    ("header", "details"),
    [
        ("handling=strict, count=none, foo", "Invalid preferences: count=none, foo"),
        ("handling=strict, Return=minimal", "Invalid preferences: Return=minimal"),
        ("timezone, handling=strict, max-affected", "Invalid preferences: timezone, max-affected"),
        ("handling=strict, max-affected=abc, tx=commit, timezone=x", None),
        ("handling=lenient, foo", None),
    ],
)
def test_unknown_preferences(header: str, details: str | None) -> None:
    preferences = parse_preferences([header])
    if details is None:
        preferences.check()
        return
    with pytest.raises(ApiError) as caught:
        preferences.check()
    assert (caught.value.status, caught.value.code, caught.value.details) == (400, "PGRST122", details)


@pytest.mark.parametrize(
    ("header", "method", "value"),
    [
        ("count=exact, return=representation", "POST", "return=representation, count=exact"),
        ("return=minimal, count=exact", "GET", "count=exact"),
        ("resolution=merge-duplicates, return=minimal", "POST", "resolution=merge-duplicates, return=minimal"),
        ("max-affected=2", "PATCH", None),
        ("max-affected=2, handling=strict", "PATCH", "handling=strict, max-affected=2"),
        ("max-affected=2, handling=strict", "POST", "handling=strict"),
        ("tx=rollback, timezone=UTC", "GET", "tx=rollback, timezone=UTC"),
        ("missing=default, return=representation", "PATCH", "missing=default, return=representation"),
        ("foo", "GET", None),
    ],
)
def test_applied_preferences(header: str, method: str, value: str | None) -> None:
    assert preference_applied(parse_preferences([header]), method=method, transaction=True, resolution=True) == value


@pytest.mark.parametrize(
    ("query", "header", "result"),
    [
        (None, None, Range()),
        (Range(0, 3), "0-1", Range(0, 2)),
        (Range(0, 0), "0-1", Range(0, 0)),
        (None, "5-", Range(5, None)),
        (Range(2, None), "0-3", Range(2, 2)),
        (None, "items=0-9", Range()),
        (None, "1-0x", Range()),
        (None, "0-" + "9" * 5000, Range()),
        (None, "9" * 5000 + "-", Range()),
    ],
)
def test_range_of_the_top_level(query: Range | None, header: str | None, result: Range) -> None:
    assert ranges.top_level(query, header) == result


@pytest.mark.parametrize(("query", "header"), [(None, "5-3"), (Range(9, 2), "0-3")])
def test_empty_ranges_are_refused(query: Range | None, header: str) -> None:
    with pytest.raises(ApiError) as caught:
        ranges.top_level(query, header)
    assert (caught.value.status, caught.value.code) == (416, "PGRST103")


@pytest.mark.parametrize(
    ("offset", "rows", "total", "status", "header"),
    [
        (0, 10, None, 200, "0-9/*"),
        (0, 15, 15, 200, "0-14/15"),
        (2, 3, 15, 206, "2-4/15"),
        (15, 0, 15, 206, "*/15"),
        (16, 0, 15, 416, "*/15"),
        (0, 0, 0, 200, "*/0"),
        (0, 0, None, 200, "*/*"),
        (99, 0, None, 200, "*/*"),
    ],
)
def test_content_range_and_status(offset: int, rows: int, total: int | None, status: int, header: str) -> None:
    assert (ranges.status(offset, rows, total), ranges.content_range(offset, rows, total)) == (status, header)


@pytest.mark.parametrize(
    ("header", "content_types"),
    [
        ("", ["*/*"]),
        ("text/csv;q=x, application/json;q=0.9", ["text/csv; charset=utf-8", "application/json; charset=utf-8"]),
        ("text/csv;q=1e-1, application/json;q=0.5", ["application/json; charset=utf-8", "text/csv; charset=utf-8"]),
        ("text/csv;q=0.5, application/json", ["application/json; charset=utf-8", "text/csv; charset=utf-8"]),
        ("*/*, text/csv", ["text/csv; charset=utf-8", "*/*"]),
        ("application/json;q=0.9, text/csv;q=high", ["text/csv; charset=utf-8", "application/json; charset=utf-8"]),
        ("application/json;q=0.9, text/csv;q=.5", ["text/csv; charset=utf-8", "application/json; charset=utf-8"]),
        ("text/csv;q=5e-1, application/json;q=0.9x", ["application/json; charset=utf-8", "text/csv; charset=utf-8"]),
        ("APPLICATION/JSON", ["application/json; charset=utf-8"]),
        ("application/vnd.pgrst.object", ["application/vnd.pgrst.object+json; charset=utf-8"]),
        (
            "application/vnd.pgrst.object+json;nulls=stripped",
            ["application/vnd.pgrst.object+json;nulls=stripped; charset=utf-8"],
        ),
        ("application/vnd.pgrst.array", ["application/json; charset=utf-8"]),
        (
            'application/vnd.pgrst.plan+json; for="text/csv"; options=verbose|analyze;',
            ['application/vnd.pgrst.plan+json; for="text/csv"; options=analyze|verbose; charset=utf-8'],
        ),
        (
            'application/vnd.pgrst.plan; for="application/vnd.pgrst.object"',
            ['application/vnd.pgrst.plan+text; for="application/vnd.pgrst.object+json"; charset=utf-8'],
        ),
        (
            'application/vnd.pgrst.plan; for="application/vnd.pgrst.array;nulls=stripped"',
            ['application/vnd.pgrst.plan+text; for="application/vnd.pgrst.array+json;nulls=stripped"; charset=utf-8'],
        ),
        ("application/octet-stream", ["application/octet-stream"]),
    ],
)
def test_accepted_media_types(header: str, content_types: list[str]) -> None:
    assert [media.content_type for media in parse_accept([header])] == content_types


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("application/vnd.pgrst.plan", 'application/vnd.pgrst.plan+text; for="application/json"'),
        ("application/vnd.pgrst.object;nulls=stripped", "application/vnd.pgrst.object+json;nulls=stripped"),
        ("Application/Vnd.pgrst.array", "application/json"),
        ("text/csv; header=absent", "text/csv"),
        ("image/png;q=0.2", "image/png"),
    ],
)
def test_media_types_in_messages_are_normalised(header: str, shown: str) -> None:
    assert [media.shown for media in parse_accept([header])] == [shown]


def test_body_of_an_error() -> None:
    error = errors.no_table("api", "vesel", "vessel")
    assert error.body() == (
        b'{"code":"PGRST205","details":null,"hint":"Perhaps you meant the table \'api.vessel\'",'
        b'"message":"Could not find the table \'api.vesel\' in the schema cache"}'
    )
    assert orjson.loads(error.body(minimal=True)) == {"code": "PGRST205", "message": error.message}


@pytest.mark.parametrize(
    "text", ['[{"X-A":"a\\nb"}]', '[{"X-A":"a\\r\\nX-B: b"}]', '[{"X A":"a"}]', '[{"":"a"}]', '[{"Ü":"a"}]']
)
def test_headers_set_by_sql_that_cannot_be_sent(text: str) -> None:
    with pytest.raises(ApiError) as caught:
        set_by_sql([], text)
    assert (caught.value.status, caught.value.code) == (500, "PGRST111")


def test_headers_set_by_sql_may_be_empty_or_unicode() -> None:
    assert set_by_sql([("vary", "x"), ("x-b", "")], '[{"Vary":""},{"X-A":"ü\\tb"}]') == [
        ("x-b", ""),
        ("vary", ""),
        ("x-a", "ü\tb"),
    ]


@pytest.mark.parametrize(("text", "status"), [("201", 201), ("404 Not Found", 404), ("202.5", 202)])
def test_status_set_by_sql(text: str, status: int) -> None:
    assert status_by_sql(text) == status


@pytest.mark.parametrize("text", ["", " 200", "x", "-200", "199", "600", "200" * 9, "2" * 5000, "٢٠٠"])
def test_an_invalid_status_set_by_sql_is_an_error(text: str) -> None:
    with pytest.raises(ApiError) as caught:
        status_by_sql(text)
    assert (caught.value.status, caught.value.code) == (500, "PGRST112")
