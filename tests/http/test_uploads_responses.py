"""Uploads and the whole response to each, to the byte: names, order and types of the metadata, and every error
(proxies-15, uploads-6 to uploads-24; uploads-1 to uploads-22)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import compare
from tests.harness.service import Service
from tests.http.conftest import Serve

File = tuple[str, bytes, str]

TEXT = ("a.txt", b"text", "text/plain")
LINES = ("a.csv", b"a,b\nc,d\n", "text/csv")
PNG = ("a.png", b"\x89PNG1234", "image/png")
BINARY = ("b.bin", b"a\0b", "x/y")
EMPTY = ("e.txt", b"", "text/plain")

META = "param _files is upload metadata"
ECHO = "returns json language sql as 'select _files'"


@dataclass(frozen=True)
class Case:
    """comment: lines, separated by `|`, behind `HTTP POST` and that of the metadata. answer: in the form of
    `tests.harness.request_tables`, with `<folder>`, `<uuid>` and `<oid>` for generated values. routine: from its
    parameters on."""

    comment: str
    files: tuple[File, ...] | bytes
    """Or the body of a form whose boundary is `b`."""
    answer: str
    query: str = ""
    routine: str = f"(_a text default null, _files json default null) {ECHO}"
    head: str = f"HTTP POST|{META}"
    headers: Mapping[str, str] = field(default_factory=dict)


SEPARATOR = r"(?<!\|)\|(?!\|)"


def echo(*entries: str) -> str:
    """The response of a routine that returns its metadata."""
    return f"200 [{','.join(entries)}]"


def entry(kind: str, file: File, rest: str) -> str:
    name, data, mime = file
    return f'{{"type":"{kind}","fileName":"{name}","contentType":"{mime}","size":{len(data)},{rest}}}'


def failed(kind: str, file: File, status: str) -> str:
    return entry(kind, file, f'"success":false,"status":"{status}"')


def csv(last: str, file: File | None = None) -> str:
    return entry("csv", file or LINES, f'{OK},"lastResult":{last}')


def lo(file: File, status: str = "Ok") -> str:
    oid = "<oid>" if status == "Ok" else "null"
    return entry("large_object", file, f'"success":{str(status == "Ok").lower()},"status":"{status}","oid":{oid}')


def fs(file: File, path: str, status: str = "Ok") -> str:
    judged = f'"success":{str(status == "Ok").lower()},"status":"{status}"'
    return entry("file_system", file, f'"filePath":"<folder>/{path}",{judged}')


def lines(command: str) -> str:
    return f"upload for csv|row_command = {command}"


def part(head: str, data: str = "1") -> bytes:
    return f"--b\r\n{head}\r\n\r\n{data}\r\n".encode("latin-1")


def named(name: str, data: str = "1") -> bytes:
    return part(f"Content-Disposition: form-data; name=f; {name}", data)


END = b"--b--\r\n"
OK = '"success":true,"status":"Ok"'
NAMES = "select coalesce(string_agg(f ->> 'fileName', '|'), 'none') from json_array_elements(_files) f"
RETURN_NAMES = f"(_files json) returns text language sql as $f$ {NAMES} $f$"


CASES: dict[str, Case] = {
    # --- what the routine is ------------------------------------------------------------------------------------------
    "jsonb": Case("upload", (TEXT,), "200T 2", routine="(_files jsonb) returns int language sql as "
                  "$$ select 1 + jsonb_array_length(_files) $$"),
    "text": Case("upload", (TEXT,), f"200T [{lo(TEXT)}]",
                 routine="(_files text) returns text language sql as 'select _files'"),
    "varchar": Case("upload", (TEXT,), f"200T [{lo(TEXT)}]",
                    routine="(_files varchar) returns varchar language sql as 'select _files'"),
    "void": Case("upload", (TEXT,), "204", routine="(_files json) returns void language sql as ''"),
    "set": Case("upload", (TEXT, PNG), '200 ["a.txt","a.png"]',
                routine="(_files json) returns setof text language sql as "
                "$$ select f ->> 'fileName' from json_array_elements(_files) f $$"),
    "procedure": Case("upload", (TEXT,), "204", routine="procedure (_files json) language sql as ''"),
    # Procedures give nothing back, whatever their parameters hold (rendering-15 to rendering-17).
    "procedure inout": Case("upload", (TEXT,), "204", routine="procedure (inout _files json) language plpgsql as "
                            "$$ begin _files := '1'; end $$"),
    "other parameters": Case("upload", (TEXT,), "200T 7 text", query="n=7&a=x",
                             routine="(_n int, _files json, _a text default 'y') returns text language sql as "
                             "$$ select _n || ' ' || split_part(_files -> 0 ->> 'contentType', '/', 1) $$"),
    # --- how it is said -----------------------------------------------------------------------------------------------
    "implied": Case("", (TEXT,), echo(lo(TEXT))),
    "as metadata": Case("upload _files as metadata", (TEXT,), echo(lo(TEXT)), head="HTTP POST"),
    "as metadata converted": Case("upload files as metadata", (TEXT,), echo(lo(TEXT)),
                                  head="HTTP POST"),
    "converted": Case("", (TEXT,), echo(lo(TEXT)), head="HTTP POST|param files is upload metadata"),
    "no parameter": Case("upload other as metadata", (TEXT,), "200 null", head="HTTP POST"),
    "only HTTP": Case("upload", (TEXT,), echo(lo(TEXT)), head=f"HTTP|{META}"),
    "put": Case("upload", (TEXT,), echo(lo(TEXT)), head=f"HTTP PUT|{META}"),
    "body parameter": Case("upload|param_type body_json", (TEXT,), "200T x", query="a=x",
                           routine="(_a text, _files json) returns text language sql as 'select _a'"),
    "in capitals": Case("UPLOAD FOR File_System, LARGE_OBJECT|unique_name = FALSE|path = <folder>/capitals", (TEXT,),
                        echo(fs(TEXT, "capitals/a.txt"), lo(TEXT))),
    "blanks": Case("upload for csv large_object|csv_row_command = select $1|stop_after_first_success = true", (LINES,),
                   echo(csv("2"), lo(LINES, "Ignored"))),
    # --- folders ------------------------------------------------------------------------------------------------------
    "folder": Case("upload for file_system", (TEXT,),
                   echo(fs(TEXT, "<uuid>.txt"))),
    "folder, no ending": Case("upload for file_system", (("README", b"x", ""),),
                              echo(fs(("README", b"x", ""), "<uuid>"))),
    "folder, empty": Case("upload for file_system", (EMPTY,),
                          echo(fs(EMPTY, "<uuid>.txt"))),
    "folder, refused": Case("upload for file_system|check_text = true|unique_name = false", (BINARY,),
                            echo(fs(BINARY, "b.bin", "ProbablyBinary"))),
    "folder, unique refused": Case("upload for file_system|file_system_excluded_mime_types = x/*", (BINARY,),
                                   echo(fs(BINARY, "<uuid>.bin", "InvalidMimeType"))),
    "folder, named": Case("upload for file_system|file = report.pdf|unique_name = false", (TEXT,),
                          echo(fs(TEXT, "report.pdf"))),
    "folder, named unique": Case("upload for file_system|file_system_file = report.pdf", (TEXT,),
                                 echo(fs(TEXT, "<uuid>.pdf"))),
    "folder, two of a name": Case("upload for file_system|unique_name = false", (TEXT, ("a.txt", b"2", "")),
                                  echo(fs(TEXT, "a.txt"), fs(("a.txt", b"2", ""), "a.txt"))),
    "folder, made": Case("upload for file_system|file_system_path = <folder>/in/{_a}/|unique_name = false", (TEXT,),
                         echo(fs(TEXT, "in/7/a.txt")), query="a=7"),
    "folder, path wins": Case("upload for file_system|file_system_path = /none|path = <folder>/p|unique_name = false",
                              (TEXT,), echo(fs(TEXT, "p/a.txt"))),
    "folder, unknown placeholder": Case("upload for file_system|path = <folder>/{b}|unique_name = false", (TEXT,),
                                        echo(fs(TEXT, "{b}/a.txt"))),
    "folder, NULL": Case("upload for file_system|path = <folder>/x{_a}|unique_name = false", (TEXT,),
                         echo(fs(TEXT, "x/a.txt"))),
    "folder, in capitals": Case("upload for file_system|path = <folder>/{_A}|unique_name = false", (TEXT,),
                                echo(fs(TEXT, "q/a.txt")), query="a=q"),
    "folder, missing": Case("upload for file_system|path = <folder>/none|create_path = false", (TEXT,),
                            "500 Internal Server Error|<folder>/none"),
    "folder, missing and no file": Case("upload for file_system|path = <folder>/none|create_path = false", (),
                                        "200 []"),
    # --- large objects ------------------------------------------------------------------------------------------------
    "object": Case("upload for large_object", (TEXT, EMPTY),
                   echo(lo(TEXT), lo(EMPTY))),
    "object, its oid": Case("upload for large_object|oid = {_a}", (TEXT,),
                            echo(lo(TEXT)).replace("<oid>", "4000000000"),
                            query="a=4000000000"),
    "object, an oid that is none": Case("upload for large_object|large_object_oid = {_a}", (TEXT,),
                                        echo(lo(TEXT)), query="a=many"),
    "object, an oid that is there": Case("upload for large_object|oid = 4000000001", (TEXT, TEXT), "409 23505"),
    "object, refused": Case("upload for large_object|large_object_check_image = true", (TEXT,),
                            echo(lo(TEXT, "InvalidImage"))),
    "object, small buffers": Case("upload for large_object|buffer_size = 1|test_buffer_size = 1|check_text = true",
                                  (("x", b"x" * 200_000, ""),),
                                  echo(lo(("x", b"x" * 200_000, "")))),
    # --- lines --------------------------------------------------------------------------------------------------------
    "lines": Case(lines("select $1"), (LINES,), echo(csv("2"))),
    "lines, refused": Case(lines("select $1") + "|csv_included_mime_types = text/plain", (LINES,),
                           echo(failed("csv", LINES, "InvalidMimeType"))),
    "lines, nothing": Case(lines("select $1") + "|check_format = false", (EMPTY,),
                           echo(csv("null", EMPTY))),
    "lines, bigint": Case(lines("select 9007199254740993"), (LINES,), echo(csv("9007199254740993"))),
    "lines, numeric": Case(lines("select 1.50"), (LINES,), echo(csv("1.50"))),
    "lines, boolean": Case(lines("select $1 = 2"), (LINES,), echo(csv("true"))),
    "lines, NULL": Case(lines("select null::text"), (LINES,), echo(csv("null"))),
    "lines, string": Case(lines("""select ($2)[2] || E'\\n"'"""), (LINES,), echo(csv(r'"d\n\""'))),
    "lines, array": Case(lines("select $2"), (LINES,), echo(csv('["c","d"]'))),
    "lines, uuid": Case(lines("select uuid '00000000-0000-0000-0000-000000000001'"), (LINES,), echo(csv('"<uuid>"'))),
    "lines, json": Case(lines("""select json '{"a":1}'"""), (LINES,), echo(csv(r'"{\"a\":1}"'))),
    "lines, date": Case(lines("select date '2026-01-02'"), (LINES,), echo(csv('"2026-01-02"'))),
    "lines, moment": Case(lines("select timestamp '2026-01-02 03:04'"), (LINES,), echo(csv('"2026-01-02T03:04:00"'))),
    "lines, the first": Case(lines("select x, $1 from (values ('p'), ('q')) as v(x)"), (LINES,), echo(csv('"p"'))),
    "lines, no row": Case(lines("select 1 where $1 < 2"), (LINES,), echo(csv("null"))),
    "lines, no column": Case(lines("insert into kept values ($1)"), (LINES,), echo(csv("null"))),
    "lines, returning": Case(lines("insert into kept values ($1) returning number * 10"), (LINES,), echo(csv("20"))),
    "lines, call": Case(lines("call quiet($1)"), (LINES,), echo(csv("null"))),
    "lines, call with a result": Case(lines("call loud($1, null)"), (LINES,), echo(csv("4"))),
    "lines, no arguments": Case(lines("select 'x'"), (LINES,), echo(csv('"x"'))),
    "lines, first and third": Case(lines("select coalesce($3, 100) + $1"), (LINES,), echo(csv("103"))),
    "lines, chained text": Case(lines("select coalesce($3, '') || ($2)[1]"), (LINES,), echo(csv('"ac"'))),
    "lines, repeated": Case(lines("select $1 + $1 * $1"), (LINES,), echo(csv("6"))),
    "lines, about": Case(lines("select $4::text"), (LINES,),
                         echo(csv(r'"{\"type\":\"csv\",\"fileName\":\"a.csv\",\"contentType\":\"text/csv\",\"size\":8,'
                                   r'\"success\":true,\"status\":\"Ok\"}"'))),
    "lines, about as json": Case(lines("select json_typeof($4)"), (LINES,), echo(csv('"object"'))),
    "lines, about as jsonb": Case(lines("select ($4::jsonb ->> 'size')::int"), (LINES,), echo(csv("8"))),
    "lines, a placeholder": Case(lines("select {_a} || '-{_a}-{b}'"), (LINES,), echo(csv('"it\'s-it\'s-{b}"')),
                                 query="a=it's"),
    "lines, each file alone": Case(
        lines("select coalesce($3, 0) + 1"), (LINES, LINES),
        echo(csv("2"), csv("2"))),
    "lines, an error": Case(lines("select 1 / (2 - $1)"), (LINES,), "500 22012: division by zero|22012"),
    "lines, raised": Case(lines("select refuse($1)"), (LINES,), "500 P0001: not 1|P0001"),
    "lines, quotes": Case(lines("select 1"), (("a.csv", b'a\n"b\n', "text/csv"),), "500 Internal Server Error|line 2"),
    # --- workbooks ----------------------------------------------------------------------------------------------------
    "workbook, none": Case("upload for excel", (LINES,), echo(failed("excel", LINES, "InvalidFormat"))),
    "workbook, its type": Case("upload for excel|excel_excluded_mime_types = text/*", (LINES,),
                               echo(failed("excel", LINES, "InvalidMimeType"))),
    "workbook, or lines": Case("upload for excel|fallback_handler = CSV|row_command = select $1", (LINES,),
                               echo(csv("2"))),
    "workbook, or lines, or neither": Case("upload for excel|excel_fallback_handler = csv|row_command = select $1",
                                           (BINARY,), echo(failed("csv", BINARY, "ProbablyBinary"))),
    "lines, or an object": Case(lines("select $1") + "|fallback_handler = large_object", (BINARY, LINES),
                                echo(lo(BINARY), csv("2"))),
    "unknown instead": Case("upload|check_text = true|large_object_fallback_handler = {_a}", (BINARY,),
                           echo(lo(BINARY, "ProbablyBinary")), query="a=unknown"),
    "a value instead": Case("upload|check_text = true|fallback_handler = {_a}|unique_name = false", (BINARY,),
                            echo(fs(BINARY, "b.bin", "ProbablyBinary")), query="a=file_system"),
    "itself": Case(lines("select 1") + "|fallback_handler = csv", (BINARY,),
                   echo(failed("csv", BINARY, "ProbablyBinary"))),
    # --- several handlers ---------------------------------------------------------------------------------------------
    "several": Case("upload for csv, large_object|row_command = select $1", (LINES, BINARY),
                    echo(csv("2"), failed("csv", BINARY, "ProbablyBinary"), lo(LINES), lo(BINARY))),
    "several, the first that takes it": Case(
        "upload for csv, file_system|row_command = select $1|stop_after_first_success = true|unique_name = false",
        (LINES, BINARY),
        echo(csv("2"), failed("csv", BINARY, "ProbablyBinary"), fs(LINES, "a.csv", "Ignored"), fs(BINARY, "b.bin"))),
    "several, ignored before its type": Case(
        "upload for large_object, excel|stop_after_first_success = true|excel_included_mime_types = x/y", (LINES,),
        echo(lo(LINES), failed("excel", LINES, "Ignored"))),
    "several, no file": Case("upload for csv, large_object, file_system", (), "200 []"),
    # --- forms --------------------------------------------------------------------------------------------------------
    "form, a name in quotes": Case("upload", named('filename="a\\"b.txt"') + END, '200T a"b.txt', routine=RETURN_NAMES),
    "form, a name of a browser": Case("upload", named('filename="a%22b.txt"') + END, "200T a%22b.txt",
                                      routine=RETURN_NAMES),
    "form, a name without quotes": Case("upload", named("filename=a.txt") + END, "200T a.txt", routine=RETURN_NAMES),
    "form, a name in front": Case("upload", part('content-disposition:form-data;filename="a.txt";name="f"') + END,
                                  "200T a.txt", routine=RETURN_NAMES),
    "form, no name of a field": Case("upload", part('Content-Disposition: form-data; filename="a.txt"') + END,
                                     "200T a.txt", routine=RETURN_NAMES),
    "form, fields between": Case("upload", part("Content-Disposition: form-data; name=x") + named("filename=1")
                                 + part('Content-Disposition: form-data; name="f"; filename=""') + named("filename=2")
                                 + part("Content-Disposition: form-data; name=f") + END,
                                 "200T 1|2", routine=RETURN_NAMES),
    "form, other characters": Case(
        "upload", named("filename=\"<&>'+ \xc3\xa9.txt\"") + END,
        echo(lo(("<&>'+ é.txt", b"1", "")))),
    "form, its type as it came": Case(
        "upload",
        part('Content-Type: Text/CSV; charset="x"\r\nContent-Disposition: form-data; name=f; filename=a') + END,
        echo(lo(("a", b"1", 'Text/CSV; charset=\\"x\\"')))),
    "form, a text before it": Case("upload", b"This is a form.\r\n" + named("filename=1") + END, "200T 1",
                                   routine=RETURN_NAMES),
    "form, lines before it": Case("upload", b"\r\n\n--a\r\n-" + b"-" * 65_000 + b"\r\n--\r\n"
                                  + named("filename=1") + END, "200T 1", routine=RETURN_NAMES),
    "form, too much before it": Case("upload", b"-" * 65_600 + b"\r\n" + named("filename=1") + END,
                                     "400 not among the first 65536 bytes", routine=RETURN_NAMES),
    "form, a text behind it": Case("upload", named("filename=1") + END + b"\r\nThat was it." * 1000, "200T 1",
                                   routine=RETURN_NAMES),
    "form, no boundary in it": Case("upload", b"x--b\r\n" * 3, "400 its boundary is not in it", routine=RETURN_NAMES),
    "form, cut off": Case("upload", named("filename=1"), "400 it ends in the middle", routine=RETURN_NAMES),
    "form, nothing": Case("upload", b"", "200T none", routine=RETURN_NAMES),
    "form, no type": Case("upload", b"x", "415 Unsupported Media Type|Incorrect Content-Type: ",
                          headers={"content-type": ""}),
    "form, other type": Case("upload", b"x", "415 Unsupported Media Type|Incorrect Content-Type: text/csv",
                             headers={"content-type": "text/csv"}),
    "form, mixed": Case("upload", END, "415 Unsupported Media Type|Incorrect Content-Type: multipart/mixed",
                        headers={"content-type": "multipart/mixed; boundary=b"}),
    "form, capitals": Case("upload", named("filename=1") + END, "200T 1", routine=RETURN_NAMES,
                           headers={"content-type": 'Multipart/Form-Data; Boundary="b"'}),
    # --- before anything is stored ------------------------------------------------------------------------------------
    "metadata of the client": Case("upload", (TEXT,), "200T a.txt", query="files=[1]", routine=RETURN_NAMES),
    "a parameter that is missing": Case("upload", (TEXT,), "404 Not Found",
                                        routine=f"(_n int, _files json) {ECHO}"),
    "a parameter that is none": Case("upload", (TEXT,), "400 ", query="n=x", routine=f"(_n int, _files json) {ECHO}"),
    "a parameter that is not allowed": Case("upload|validate _a using required", (TEXT,), "400 ", query="a="),
    "unknown": Case("upload|authorize", (TEXT,), "401 "),
    "raised by the routine": Case("upload", (TEXT,), "400 not these",
                                  routine="(_files json) returns json language plpgsql as "
                                  "$$ begin raise exception 'not these'; end $$"),
}  # fmt: skip

SCHEMA = """
create table kept (number int);
create procedure quiet(int) language sql as '';
create procedure loud(_n int, inout _result int) language plpgsql as $$ begin _result := _n * 2; end $$;
create function refuse(_n int) returns int language plpgsql as $$ begin raise exception 'not %', _n; end $$;
"""


def schema(folder: Path) -> str:
    made = [SCHEMA]
    for number, case in enumerate(CASES.values()):
        comment = "\n".join(line for line in re.split(SEPARATOR, f"{case.head}|{case.comment}") if line)
        kind, routine = "function", case.routine
        if routine.startswith("procedure "):
            kind, routine = routine.split(" ", 1)
        made.append(
            f"create {kind} up_{number}{routine}; "
            f"comment on {kind} up_{number} is $c${comment.replace('<folder>', str(folder))}$c$;"
        )
    return "\n".join(made)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    settings = {
        "Service:UploadOptions:Enabled": "true",
        "Service:UploadOptions:UploadHandlers:FileSystemPath": str(folder),
    }
    return serve(database, schema(folder), settings)


@pytest.mark.parametrize("name", CASES)
def test_an_upload_has_the_expected_response_and_effects(
    service: Service, database: Database, folder: Path, name: str
) -> None:
    case = CASES[name]
    url = f"/api/up-{list(CASES).index(name)}?{case.query}"
    before = database.value("select count(*) from pg_largeobject_metadata")
    if isinstance(case.files, bytes):
        headers = {"content-type": "multipart/form-data; boundary=b", **case.headers}
        response = service.post(url, content=case.files, headers=headers)
    else:
        response = service.post(url, files=[("f", file) for file in case.files] or [("text", (None, b"x"))])
    compare(response, case.answer.replace("<folder>", str(folder)), masked=masked)
    if response.status_code >= 400:
        assert database.value("select count(*) from pg_largeobject_metadata") == before


def masked(body: str) -> str:
    body = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=[.\"])", "<uuid>", body)
    return re.sub(r'"oid":(?!4000000000)\d+', '"oid":<oid>', body)


@pytest.mark.parametrize(
    "message",
    [
        "the routine has no parameter other, so it does not get the metadata of uploads",
        "uploads require POST, which is the method instead of PUT",
        "the body holds the files; parameters are taken from the query string",
        "file_system has refused b.bin [x/y, 3 bytes]: ProbablyBinary",
        "large_object has stored a.txt [text/plain, 4 bytes]: Ok",
    ],
)
def test_mistakes_are_logged_at_the_start(service: Service, message: str) -> None:
    files = [("f", BINARY), ("f", TEXT)]
    service.post(f"/api/up-{list(CASES).index('folder, refused')}", files=files[:1])
    service.post(f"/api/up-{list(CASES).index('implied')}", files=files[1:])
    service.wait_for_log(message)
