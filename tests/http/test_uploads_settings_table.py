"""What each setting of an upload does, in a comment: with and without the handler in front, as text, as a placeholder
(uploads-1 to uploads-22). A row is an endpoint, what is sent to it, and what becomes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

File = tuple[str, bytes, str]

CSV = "text/csv"
PNG = b"\x89PNG\r\n\x1a\n"
BINARY = b"a\0b\n"
ECHO = "csv_row_command = select keep($1, $2, $3::text, $4)"


@dataclass(frozen=True)
class Row:
    """comment: behind `HTTP POST`, lines separated by `|`. expected: `type:status` of each entry, in order. cells:
    of the rows that were kept. last: `lastResult` of the last entry."""

    comment: str
    files: tuple[File, ...]
    expected: str
    query: str = ""
    cells: list[list[str | None] | None] | None = None
    last: Any = ...


def csv(data: bytes, name: str = "a.csv", kind: str = CSV) -> tuple[File, ...]:
    return ((name, data, kind),)


def command(sql: str) -> str:
    return f"upload for csv|row_command = {sql}"


FOUR = ("t.txt", b"text\n", "text/plain"), ("b.bin", BINARY, "x/y"), ("e.txt", b"", "text/plain"), ("p", PNG, "")
SIGNED = {
    "a.bmp": b"BM",
    "a.tif": b"II*\0",
    "b.tif": b"MM\0*",
    "a.webp": b"RIFF0000WEBPxx",
    "a.gif": b"GIF87a",
    "b.gif": b"GIF88a",
    "b.webp": b"RIFF0000WEB",
}

ROWS = (
    # cells of a line
    Row(f"upload for csv|{ECHO}", csv(b"a,b\n"), "csv:Ok", cells=[["a", "b"]]),
    Row(f"upload for csv|{ECHO}", csv(b"\xef\xbb\xbfa,b\rc\r\nd\n"), "csv:Ok", cells=[["a", "b"], ["c"], ["d"]]),
    Row(
        f"upload for csv|{ECHO}",
        csv(b' a , " b, ""c"" " ,, \t\n'),
        "csv:Ok",
        cells=[["a", 'b, "c"', None, None]],
    ),
    Row(f"upload for csv|{ECHO}", csv(b"a\n\nb\n"), "csv:Ok", cells=[["a"], None, ["b"]]),
    Row(
        f"upload for csv|{ECHO}",
        csv(b'x""y,"""a""",""\n  \n"x" ,y"z\ncaf\xc3\xa9\n,\n'),
        "csv:Ok",
        cells=[['x""y', '"a"', None], None, ["x", 'y"z'], ["caf\u00e9"], [None, None]],
    ),
    Row(f"upload for csv|{ECHO}|delimiters = ;\\t", csv(b"a;b\tc,d\n"), "csv:Ok", cells=[["a", "b", "c,d"]]),
    Row(
        f"upload for csv|{ECHO}|csv_delimiters = ;|delimiters = ,",
        csv(b"a;b,c\n"),
        "csv:Ok",
        cells=[["a;b", "c"]],
    ),
    Row(f"upload for csv|{ECHO}|delimiters = {{_a}}", csv(b"a;b\n"), "csv:Ok", query="a=%3B", cells=[["a", "b"]]),
    Row(
        f"upload for csv|{ECHO}|csv_has_fields_enclosed_in_quotes = FALSE",
        csv(b'"a",b\n'),
        "csv:Ok",
        cells=[['"a"', "b"]],
    ),
    Row(
        f"upload for csv|{ECHO}|has_fields_enclosed_in_quotes = {{_a}}",
        csv(b'"a",b\n'),
        "csv:Ok",
        query="a=perhaps",
        cells=[["a", "b"]],
    ),
    Row(f"upload for csv|{ECHO}|set_white_space_to_null = false", csv(b"a, ,\n"), "csv:Ok", cells=[["a", "", ""]]),
    # encodings
    Row(f"upload for csv|{ECHO}|encoding = latin-1", csv(b"caf\xe9\n"), "csv:Ok", cells=[["caf\u00e9"]]),
    Row(f"upload for csv|{ECHO}|csv_encoding = Windows-1252", csv(b"\x80 5\n"), "csv:Ok", cells=[["\u20ac 5"]]),
    Row(
        f"upload for csv|{ECHO}|encoding = utf-16",
        csv("\ufeffé;1,\U0001f600\r\nb\r\n".encode("utf-16le")),
        "csv:Ok",
        cells=[["é;1", "\U0001f600"], ["b"]],
    ),
    Row(f"upload for csv|{ECHO}|encoding = utf-16", csv("ab".encode("utf-16")), "csv:NoNewLines", cells=[]),
    Row(f"upload for csv|{ECHO}|encoding = utf-16be", csv("a\0\n".encode("utf-16be")), "csv:ProbablyBinary", cells=[]),
    Row(f"upload for csv|{ECHO}|encoding = {{_a}}", csv(b"\xe9\n"), "csv:Ok", query="a=latin-1", cells=[["\u00e9"]]),
    Row(f"upload for csv|{ECHO}|encoding = {{_a}}", csv(b"\xc3\xa9\n"), "csv:Ok", cells=[["\u00e9"]]),
    Row(f"upload for csv|{ECHO}|encoding = shift_jis", csv(b"\x8a\xbf\n"), "csv:Ok", cells=[["\u6f22"]]),
    Row(
        f"upload for csv|{ECHO}|delimiters = \u00a7|encoding = latin-1",
        csv(b"\xe9\xa7b\n"),
        "csv:Ok",
        cells=[["\u00e9", "b"]],
    ),
    # is it a text, with lines?
    Row(f"upload for csv|{ECHO}", csv(b"one line"), "csv:NoNewLines", cells=[]),
    Row(f"upload for csv|{ECHO}", csv(b"a\rb\r"), "csv:NoNewLines", cells=[]),
    Row(f"upload for csv|{ECHO}|check_format = false", csv(b"one line"), "csv:Ok", cells=[["one line"]]),
    Row(f"upload for csv|{ECHO}|check_format = {{_a}}", csv(b"x"), "csv:Ok", query="a=False", cells=[["x"]]),
    Row(f"upload for csv|{ECHO}", csv(b"\1\2\3\4\5\n"), "csv:Ok"),
    Row(f"upload for csv|{ECHO}", csv(b"\1\2\3\4\5\6\n"), "csv:ProbablyBinary", cells=[]),
    Row(f"upload for csv|{ECHO}|non_printable_threshold = 6", csv(b"\1\2\3\4\5\6\n"), "csv:Ok"),
    Row(f"upload for csv|{ECHO}|csv_test_buffer_size = 2", csv(b"a\n\1\1\1\1\1\1\n"), "csv:Ok"),
    Row(f"upload for csv|{ECHO}|test_buffer_size = 2", csv(b"abc\n"), "csv:NoNewLines", cells=[]),
    # types
    Row(f"upload for csv|{ECHO}|included_mime_types = TEXT/*", csv(b"a\n"), "csv:Ok"),
    Row(
        f"upload for csv|{ECHO}|included_mime_types = text/csv",
        csv(b"a\n", kind="text/csv; charset=utf-8"),
        "csv:InvalidMimeType",
        cells=[],
    ),
    Row(
        f"upload for csv|{ECHO}|csv_included_mime_types = text/*|csv_excluded_mime_types = */c?v, x/y",
        csv(b"a\n"),
        "csv:InvalidMimeType",
    ),
    Row("upload|excluded_mime_types = text/*", csv(b"a", kind=""), "large_object:Ok"),
    Row("upload|included_mime_types = *", csv(b"a", kind=""), "large_object:InvalidMimeType"),
    Row("upload|included_mime_types = image/pn?,, a/x-?zip", csv(b"a", kind="a/x-gzip"), "large_object:Ok"),
    Row("upload|included_mime_types = image/pn?,, a/x-?zip", csv(b"a", kind="a/x-zip"), "large_object:InvalidMimeType"),
    # What stands without the handler in front wins.
    Row(
        f"upload for csv|{ECHO}|csv_included_mime_types = image/*|included_mime_types = text/*",
        csv(b"a\n"),
        "csv:Ok",
    ),
    # results of rows
    Row(command("select $1 * 2"), csv(b"a\nb\n"), "csv:Ok", last=4),
    Row(command("select $1 > 1"), csv(b"a\nb\n"), "csv:Ok", last=True),
    Row(command("select 'NaN'::float8"), csv(b"a\n"), "csv:Ok", last="NaN"),
    Row(command("select $3, $1"), csv(b"a\nb\n"), "csv:Ok", last=None),
    Row(command("select null::int where $1 > 0"), csv(b"a\n"), "csv:Ok", last=None),
    Row(command("select ($2)[1]"), csv(b'"\xc3\xa4""\\"\n'), "csv:Ok", last='ä"\\'),
    Row(command("select array[$1, null, 7]"), csv(b"a\n"), "csv:Ok", last=[1, None, 7]),
    Row(command("select $2"), csv(b"a,\n"), "csv:Ok", last=["a", None]),
    Row(command("select 1.50::numeric"), csv(b"a\n"), "csv:Ok", last=1.5),
    Row(command("select date '2026-01-02' + $1"), csv(b"a\n"), "csv:Ok", last="2026-01-03"),
    Row(command("select coalesce($3::int, 0) + 10"), csv(b"a\nb\nc\n"), "csv:Ok", last=30),
    Row(command("select $1 + $1"), csv(b"a\nb\n"), "csv:Ok", last=4),
    Row(command("select $4::json ->> 'fileName'"), csv(b"a\n", "n.csv"), "csv:Ok", last="n.csv"),
    Row(command("select {_a}"), csv(b"a\n"), "csv:Ok", query="a=x%27y", last="x'y"),
    Row(command("call keep_quietly($1, $2, $3, $4)"), csv(b"a\n"), "csv:Ok", cells=[["a"]], last=None),
    # files as they are
    Row("upload for large_object|check_text = true", FOUR[:3], "large_object:Ok,ProbablyBinary,Empty"),
    Row(
        "upload for file_system|file_system_check_image = true",
        (FOUR[0], FOUR[3]),
        "file_system:InvalidImage,Ok",
    ),
    Row("upload for file_system|check_image = gif, jpg", (FOUR[3],), "file_system:InvalidImage"),
    Row(
        "upload for file_system|check_image = tiff, bmp, webp, gif",
        tuple((name, data, "") for name, data in SIGNED.items()),
        "file_system:Ok,Ok,Ok,Ok,Ok,InvalidImage,InvalidImage",
    ),
    Row("upload for large_object|check_image = {_a}", (FOUR[3],), "large_object:Ok", query="a=png"),
    Row("upload for large_object|check_image = {_a}", (FOUR[3],), "large_object:InvalidImage", query="a=gif"),
    Row("upload for large_object|check_image = {_a}", (FOUR[3],), "large_object:InvalidImage", query="a=svg"),
    Row("upload for large_object|check_text = true|check_image = true", (FOUR[0],), "large_object:InvalidImage"),
    # other handlers
    Row(
        "upload for large_object|check_text = true|fallback_handler = file_system",
        FOUR[:2],
        "large_object:Ok file_system:ProbablyBinary",
    ),
    Row(
        "upload for file_system|file_system_check_text = true|file_system_fallback_handler = large_object",
        FOUR[:3],
        "file_system:Ok large_object:Ok,Ok",
    ),
    Row(
        "upload for file_system|file_system_included_mime_types = image/*|fallback_handler = large_object",
        (FOUR[0],),
        "large_object:Ok",
    ),
    Row(
        "upload for large_object|check_text = true|fallback_handler = {_a}",
        (FOUR[1],),
        "large_object:ProbablyBinary",
        query="a=unknown",
    ),
    Row(f"upload for excel|{ECHO}|fallback_handler = csv", csv(BINARY), "csv:ProbablyBinary", cells=[]),
    Row(f"upload for excel|{ECHO}|excel_fallback_handler = csv", csv(b"a\n"), "csv:Ok", cells=[["a"]]),
    Row("upload for excel", csv(b"a\n"), "excel:InvalidFormat"),
    Row("upload for excel|included_mime_types = image/*", csv(b"a\n"), "excel:InvalidMimeType"),
    Row(
        "upload for large_object, file_system",
        (("A.txt", b"a", ""), ("b.txt", b"b", "")),
        "large_object:Ok,Ok file_system:Ok,Ok",
    ),
    # The included types of a handler do not apply to its fallback, unless the option applies to all handlers.
    Row(
        "upload for csv|fallback_handler = large_object|csv_included_mime_types = text/csv",
        csv(b"a\n", kind="image/png"),
        "large_object:Ok",
    ),
    Row(
        "upload for csv|fallback_handler = file_system|included_mime_types = text/csv",
        csv(b"a\n", kind="image/png"),
        "file_system:InvalidMimeType",
    ),
    Row(
        "upload for large_object, file_system|stop_after_first_success = true",
        (("A.txt", b"a", ""), ("a.TXT", b"b", "")),
        "large_object:Ok,Ok file_system:Ignored,Ignored",
    ),
    Row(
        "upload for large_object, file_system|large_object_check_text = true|"
        "file_system_stop_after_first_success = TRUE",
        FOUR[:2],
        "large_object:Ok,ProbablyBinary file_system:Ignored,Ok",
    ),
    Row("upload for CSV|csv_check_format = false|row_command = select 1", csv(b"x"), "csv:Ok"),
    Row("upload|Upload for the members of the club.", csv(b"x"), "large_object:Ok"),
    Row("upload for large_object, csv", (), ""),
    Row("upload _files as metadata", csv(b"x"), "large_object:Ok"),
)


LEFT_OUT = {
    "unknown_handler": "upload for file_sytem",
    "unknown_beside": r"upload for unknown, csv\ncsv_check_format = false\nrow_command = select 1",
    "unknown_fallback": r"upload for large_object\ncheck_text = true\nfallback_handler = unknown",
    "own_fallback": r"upload for csv\nrow_command = select 1\ncsv_fallback_handler = {unknown}",
    "fifth_value": r"upload for csv\ncsv_row_command = select keep($1,$2,{_files},$5)",
}


def schema() -> str:
    made = [
        "create table kept (number int, cells text[], previous text, about json);",
        "create function keep(int, text[], text, json) returns int language sql as $$ insert into kept "
        "values ($1, $2, $3, $4) returning number $$;",
        "create procedure keep_quietly(int, text[], text, json) language sql as $$ insert into kept "
        "values ($1, $2, $3, $4) $$;",
    ]
    for number, row in enumerate(ROWS):
        comment = "\n".join(("HTTP POST", "param _files is upload metadata", *row.comment.split("|")))
        made.append(
            f"create function up_{number}(_a text default null, _files json default null) returns json language sql "
            f"as 'select _files'; comment on function up_{number}(text, json) is $c${comment}$c$;"
        )
    for name, comment in LEFT_OUT.items():
        made.append(
            f"create function {name}(_files json default null) returns json language sql as 'select _files'; "
            f"comment on function {name}(json) is E'HTTP POST\\n{comment}';"
        )
    return "\n".join(made)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder: Path = tmp_path_factory.mktemp("uploads")
    settings = {
        "Service:UploadOptions:Enabled": "true",
        "Service:UploadOptions:UploadHandlers:FileSystemPath": str(folder),
    }
    return serve(database, schema(), settings)


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda number: f"{number}-{ROWS[number].comment[:70]}")
def test_each_setting_has_the_documented_effect(service: Service, database: Database, number: int) -> None:
    row = ROWS[number]
    database.execute("truncate kept")
    files: list[tuple[str, File | tuple[None, bytes]]] = [("f", file) for file in row.files]
    files = files or [("no_file", (None, b"x"))]
    response = service.post(f"/api/up-{number}?{row.query}", files=files)
    assert response.status_code == 200, response.text
    entries = response.json()
    values = " ".join(f"{entry['type']}:{entry['status']}" for entry in entries)
    # `csv:Ok,Empty` is short for two entries of one handler.
    items = re.sub(
        r"(\w+):([\w,]+)", lambda item: " ".join(f"{item[1]}:{word}" for word in item[2].split(",")), row.expected
    )
    assert values == items
    assert all(entry["success"] is (entry["status"] == "Ok") for entry in entries)
    if row.cells is not None:
        assert [cells for (cells,) in database.fetch("select cells from kept order by number")] == row.cells
    if row.last is not ...:
        assert entries[-1]["lastResult"] == row.last


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("unknown_handler", "there is no upload handler file_sytem: name one of large_object, file_system, csv, excel"),
        ("unknown_beside", "there is no upload handler unknown: name one of large_object, file_system, csv, excel"),
        (
            "unknown_fallback",
            "fallback_handler: there is no upload handler unknown: name one of large_object, file_sys",
        ),
        (
            "own_fallback",
            "csv_fallback_handler: there is no upload handler {unknown}: name one of large_object, file_s",
        ),
        ("fifth_value", "csv_row_command: a row command has the values $1 to $4, not $5; the endpoint is left out"),
    ],
)
def test_an_endpoint_with_an_unknown_handler_is_left_out(
    service: Service, database: Database, name: str, message: str
) -> None:
    """Files would be stored elsewhere, with other checks than the comment asks for."""
    objects = database.value("select count(*) from pg_largeobject_metadata")
    response = service.post(f"/api/{name.replace('_', '-')}", files=[("f", ("a.txt", b"x", "text/plain"))])
    assert response.status_code == 404
    assert database.value("select count(*) from pg_largeobject_metadata") == objects
    assert f"public.{name}(json): {message}" in service.log


@pytest.mark.parametrize("line", ['a,"b\n', '"a"b,c\n', '"a\nb"\n'])
def test_unbalanced_quotes_end_the_request(service: Service, line: str) -> None:
    response = service.post("/api/up-0", files={"f": ("a.csv", line.encode(), CSV)})
    assert response.status_code == 500
    assert "line 1" in response.json()["detail"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("comment", "data", "error"),
    [
        (
            f"upload for csv|{ECHO}",
            b"a\nb\ncaf\xe9\n",
            "a.csv cannot be read: line 3: byte 8 of the file (0xe9) is not",
        ),
        (
            f"upload for csv|{ECHO}",
            b"a\n" * 40_000 + b"\xff",
            "a.csv cannot be read: line 40001: byte 80001 of the file",
        ),
        (f"upload for csv|{ECHO}|csv_encoding = Windows-1252", b"\x81\n", "is not valid windows-1252"),
    ],
)
def test_a_file_with_invalid_bytes_is_refused_completely(
    service: Service, database: Database, comment: str, data: bytes, error: str
) -> None:
    number = next(number for number, row in enumerate(ROWS) if row.comment == comment)
    database.execute("truncate kept")
    response = service.post(f"/api/up-{number}", files={"f": ("a.csv", data, CSV)})
    assert response.status_code == 400
    assert error in response.json()["detail"]
    assert database.value("select count(*) from kept") == 0


def test_an_unknown_encoding_is_400(service: Service) -> None:
    number = next(number for number, row in enumerate(ROWS) if "|encoding = {_a}" in row.comment)
    response = service.post(f"/api/up-{number}?a=ebcdic", files={"f": ("a.csv", b"a\n", CSV)})
    assert response.status_code == 400
    assert "'ebcdic' is not one of the encodings utf-8, utf-16" in response.json()["detail"]
