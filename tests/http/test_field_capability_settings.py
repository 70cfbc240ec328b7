"""Effects of single settings of caches, proxies, HTTP types and uploads (caching-1 to caching-3, outbound-1,
outbound-2, proxies-1, proxies-2, uploads-1 to uploads-5)."""

# ruff: noqa: E501 (tables, one declaration a line)

from __future__ import annotations

import io
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
import xlsxwriter

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer, echo
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, member_sql, with_cookie

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def function(head: str, returns: str, body: str, comment: str) -> str:
    name = head.split("(")[0]
    return (
        f"create function {head} returns {returns} language sql as $$ {body} $$;\n"
        f"comment on function {name} is $c${comment}$c$;\n"
    )


def schema(url: str) -> str:
    meta = "json", "select _files"
    return (
        "create sequence runs; create function ran() returns bigint language sql as $$ select nextval('runs') $$;\n"
        "create table row_of (number int, cells text[], data json, about json);\n"
        "create function keep_line(int, text[], text, json) returns int language sql as\n"
        "  $$ insert into row_of (number, cells, about) values ($1, $2, $4) returning number $$;\n"
        "create function keep_cells(int, json, text, json) returns int language sql as\n"
        "  $$ insert into row_of (number, data, about) values ($1, $2, $4) returning number $$;\n"
        + function("one(_a text)", "bigint", "select ran()", "HTTP GET\ncached")
        + function("lasting(_a text)", "bigint", "select ran()", "HTTP GET\ncached\ncache_expires 1 hour")
        + function("rows_of(_a text)", "table (n bigint, a text)", "select ran(), _a", "HTTP GET\ncached")
        + function("no_rows(_a text)", "setof bigint", "select r from (select ran() r offset 0) s where r < 0", "HTTP GET\ncached")
        + function("passed()", "void", "", "HTTP GET /passed\nproxy")
        + function("posted()", "void", "", "HTTP POST /posted\nproxy")
        + function("headed()", "void", "", "HTTP GET /headed\nproxy")
        + function("direct()", "void", "", f"HTTP POST /direct\nX-Mine: 1\nproxy {url}")
        + function("sent_out()", "int", "select 7", f"HTTP GET /sent-out\nproxy_out POST {url}")
        + function(
            "long_value(_v text default null)",
            "void",
            "",
            "HTTP GET /long-value\nproxy\n_v = select repeat('x', {_n}::int)".replace("{_n}", "{_w}"),
        ).replace("_v text default null", "_v text default null, _w text default null")
        + function(
            "reported(_said text, _code int, _proxy_body text default 'mine')",
            "text",
            "select concat_ws('|', _said, _code, _proxy_body)",
            "HTTP GET /reported\nproxy",
        )
        + f"create type reply as (answer text, code int, status_code text, fine boolean, why text, kind text, heads json);\n"
        f"comment on type reply is $c$cache 1 hour\nGET {url}/counted$c$;\n"
        + function(
            "replied(_r reply)",
            "text",
            "select concat_ws('|', (_r).answer, (_r).code, coalesce((_r).status_code, 'NULL'), (_r).fine, "
            "coalesce((_r).why, 'NULL'), (_r).kind, (_r).heads ->> 'X-One')",
            "HTTP GET /replied",
        )
        + function("up_default(_files json)", *meta, "HTTP POST\nupload")
        + function("up_lo(_files json)", *meta, "HTTP POST\nupload for LO")
        + function("up_fs(_files json)", *meta, "HTTP POST\nupload for fs")
        + function("up_fs_own(_files json)", *meta, "HTTP POST\nupload for fs\nfs_check_image = false\nfs_file = mine.txt")
        + function("up_lines(_files json)", *meta, "HTTP POST\nupload for lines")
        + function("up_lines_own(_files json)", *meta, "HTTP POST\nupload for lines\nlines_delimiters = ,\n"
                   "has_fields_enclosed_in_quotes = TRUE\nlines_set_white_space_to_null = true\nlines_check_format = true")
        + function("up_book(_files json)", *meta, "HTTP POST\nupload for book")
        + function("up_book_own(_files json)", *meta, "HTTP POST\nupload for book\nall_sheets = false\n"
                   "book_sheet_name = SOUTH\nbook_row_is_json = false\nrow_command = select keep_line($1, $2, $3, $4)")
        + function("up_two(_files json)", *meta, "HTTP POST\nupload for lo, lines")
        + function("up_kept()", "json", "select current_setting('app.files')::json", "HTTP POST\nupload for fs\nfs_check_image = false")
    )  # fmt: skip


def settings(url: str, folder: Path) -> dict[str, str]:
    cache, proxy, types = "CacheOptions:", "Service:ProxyOptions:", "Service:HttpClientOptions:"
    uploads = "Service:UploadOptions:"
    handlers = uploads + "UploadHandlers:"
    return {
        **EVERY_SCHEME,
        cache + "Enabled": "true",
        cache + "Type": "hybrid",
        cache + "UseHashedCacheKeys": "true",
        cache + "HashKeyThreshold": "10",
        cache + "HybridCacheMaximumKeyLength": "64",
        cache + "HybridCacheDefaultExpiration": "1 hour",
        cache + "HybridCacheLocalCacheExpiration": "1 hour",
        cache + "MaxCacheableRows": "0",
        cache + "InvalidateCacheSuffix": "/Purge/",
        proxy + "Enabled": "true",
        proxy + "Host": url + "/base/",
        proxy + "DefaultTimeout": "a while",
        proxy + "ExcludeHeaders:0": "X-Secret",
        proxy + "ExcludeResponseHeaders:0": "x-hidden",
        proxy + "ResponseBodyParameter": "_Said",
        proxy + "ResponseStatusCodeParameter": "_code",
        proxy + "MaxForwardedQueryParamLength": "5",
        types + "Enabled": "true",
        types + "ResponseBodyField": "answer",
        types + "ResponseStatusCodeField": "code",
        types + "ResponseSuccessField": "fine",
        types + "ResponseErrorMessageField": "why",
        types + "ResponseContentTypeField": "kind",
        types + "ResponseHeadersField": "heads",
        types + "CacheEnabled": "false",
        uploads + "Enabled": "true",
        uploads + "LogUploadEvent": "false",
        uploads + "DefaultUploadHandler": "fs",
        uploads + "UseDefaultUploadMetadataParameter": "true",
        uploads + "DefaultUploadMetadataParameterName": "_FILES",
        uploads + "UseDefaultUploadMetadataContextKey": "true",
        uploads + "DefaultUploadMetadataContextKey": "app.files",
        handlers + "StopAfterFirstSuccess": "true",
        handlers + "IncludedMimeTypePatterns": "text/*, image/???, application/*",
        handlers + "ExcludedMimeTypePatterns": "image/gif",
        handlers + "TextTestBufferSize": "8",
        handlers + "TextNonPrintableThreshold": "1",
        handlers + "AllowedImageTypes": "png, jpg",
        handlers + "RowCommandUserClaimsKey": "who",
        handlers + "LargeObjectKey": "lo",
        handlers + "LargeObjectCheckText": "true",
        handlers + "FileSystemKey": "fs",
        handlers + "FileSystemPath": str(folder),
        handlers + "FileSystemUseUniqueFileName": "false",
        handlers + "FileSystemCreatePathIfNotExists": "false",
        handlers + "FileSystemCheckImage": "true",
        handlers + "CsvUploadKey": "lines",
        handlers + "CsvUploadCheckFileStatus": "false",
        handlers + "CsvUploadDelimiterChars": ";|",
        handlers + "CsvUploadHasFieldsEnclosedInQuotes": "false",
        handlers + "CsvUploadSetWhiteSpaceToNull": "false",
        handlers + "CsvUploadRowCommand": "select keep_line($1, $2, $3, $4)",
        handlers + "ExcelKey": "book",
        handlers + "ExcelAllSheets": "true",
        handlers + "ExcelRowDataAsJson": "true",
        handlers + "ExcelDateFormat": "dd.MM.yy",
        handlers + "ExcelUploadRowCommand": "select keep_cells($1, $2, $3, $4)",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module")
def prepared_upstream(upstream: Upstream) -> Upstream:
    upstream.on("*", echo)
    upstream.on(
        "/base/headed",
        answer("x", 203, [("X-Hidden", "1"), ("X-Shown", "2"), ("Connection", "close")], "text/plain"),
    )
    upstream.on("/base/reported", answer("said", 503, content_type="text/plain"))
    numbers = iter(range(1, 100))

    def counted(_seen: Seen, _connection: socket.socket) -> bytes:
        return answer(str(next(numbers)), 202, [("X-One", "1")], "text/plain")

    upstream.on("/counted", counted)

    def echo_request(request: Seen, _connection: socket.socket) -> bytes:
        result = f"{request.header('x-other')} {request.header('content-type')} {request.body.decode()}"
        return answer(result, 201, [("X-Theirs", "1"), ("ETag", "x")], "text/plain")

    upstream.on("/direct", echo_request)
    upstream.on("/sent-out", echo_request)
    return upstream


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, prepared_upstream: Upstream, folder: Path) -> Service:
    return serve(database, member_sql() + schema(prepared_upstream.url), settings(prepared_upstream.url, folder))


# --- caches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "is_cached"),
    [
        ("one?a=x", True),
        ("one?a=" + "x" * 2000, True),
        ("lasting?a=x", True),
        ("rows-of?a=x", False),
    ],
)
def test_configured_limits_decide_caching_of_long_keys_and_row_sets(
    service: Service, path: str, is_cached: bool
) -> None:
    first = service.get(f"/api/{path}")
    assert first.status_code == 200
    assert (service.get(f"/api/{path}").text == first.text) is is_cached


def test_response_with_a_hashed_key_is_invalidated(service: Service) -> None:
    value = "y" * 1000
    first = service.get(f"/api/one?a={value}").text
    for _ in range(2):
        purged = service.post(f"/api/one/purge?a={value}")
        assert (purged.status_code, purged.headers["content-type"]) == (200, "application/json")
    assert purged.text == '{"invalidated":false}'
    assert service.get(f"/api/one?a={value}").text != first


def test_empty_sets_are_not_cached(service: Service, database: Database) -> None:
    for _ in range(2):
        before = database.value("select last_value from runs")
        assert service.get("/api/no-rows?a=x").text == "[]"
        assert database.value("select last_value from runs") > before
        assert service.post("/api/no-rows/purge?a=x").text == '{"invalidated":false}'


# --- proxies and HTTP types -----------------------------------------------------------------------------------------


def test_configured_header_list_replaces_the_default(service: Service, prepared_upstream: Upstream) -> None:
    received = service.get("/passed", headers={"X-Secret": "s", "X-Other": "o", "Host": "elsewhere.example"}).json()
    assert "x-secret" not in received["headers"]
    assert received["headers"]["x-other"] == "o"
    assert len(prepared_upstream.to("/base/passed")[-1].all("host")) == 1
    posted = service.post("/posted", content=b"abc").json()
    assert posted["body"] == "abc"
    assert prepared_upstream.to("/base/posted")[-1].all("content-length") == ["3"]


@pytest.mark.parametrize(
    "context",
    cases([
        ("GET /headed", "203T x", {"x-hidden": None, "x-shown": "2"}),
        ("GET /reported", "200T said|503|mine"),
        ("GET /reported?said=evil&proxyBody=theirs", "200T said|503|theirs"),
        ("GET /replied", "200T 1|202|NULL|t|NULL|text/plain|1"),
        ("GET /replied?rStatusCode=x", "200T 2|202|x|t|NULL|text/plain|1"),
    ]),
)  # fmt: skip
def test_configured_names_and_lists_are_used(service: Service, context: RequestContext) -> None:
    check(service, context)


@pytest.mark.parametrize(("size", "query"), [(5, "&v=xxxxx"), (6, "")])
def test_length_limit_of_forwarded_values_is_configurable(service: Service, size: int, query: str) -> None:
    assert service.get(f"/long-value?w={size}").json()["target"] == f"/base/long-value?w={size}{query}"


def test_invalid_default_timeout_is_logged_and_replaced_by_30_seconds(service: Service) -> None:
    service.wait_for_log("DefaultTimeout: 'a while' is no interval such as '5 seconds'; 30 seconds are used")


# --- uploads --------------------------------------------------------------------------------------------------------


def upload(service: Service, path: str, *files: tuple[str, bytes, str], **options: Any) -> Any:
    response = service.post(f"/api/{path}", files=[("file", file) for file in files], **options)
    assert response.status_code == 200, response.text
    return response.json()


PNG = b"\x89PNG\r\n\x1a\n12345"


@pytest.mark.parametrize(
    ("path", "file", "status"),
    [
        ("up-default", ("a.png", PNG, "image/png"), "fs Ok"),
        ("up-default", ("a.jpg", b"\xff\xd8\xff123456789", "image/jpg"), "fs Ok"),
        ("up-default", ("a.gif", b"GIF89a123456", "image/gif"), "fs InvalidMimeType"),
        ("up-default", ("a.gif", b"GIF89a123456", "image/png"), "fs InvalidImage"),
        ("up-default", ("a.webp", b"RIFF1234WEBP", "image/webp"), "fs InvalidMimeType"),
        ("up-default", ("a.png", PNG, "IMAGE/PNG"), "fs Ok"),
        ("up-fs", ("a.txt", b"text", "text/plain"), "fs InvalidImage"),
        ("up-fs-own", ("a.txt", b"text", "text/plain"), "fs Ok"),
        ("up-lo", ("a.txt", b"\x01text", "text/plain"), "lo Ok"),
        ("up-lo", ("a.txt", b"\x01\x02text", "text/plain"), "lo ProbablyBinary"),
        ("up-lo", ("a.txt", b"\x01-------\x02\0", "text/plain"), "lo Ok"),
        ("up-lo", ("a.txt", b"", "text/plain"), "lo Empty"),
        ("up-lo", ("a.txt", b"x", "audio/x"), "lo InvalidMimeType"),
        ("up-lines", ("a.csv", b"one", "text/csv"), "lines Ok"),
        ("up-lines", ("a.csv", b"", "text/csv"), "lines Ok"),
        ("up-lines-own", ("a.csv", b"one", "text/csv"), "lines NoNewLines"),
        ("up-lines-own", ("a.csv", b"too long\n", "text/csv"), "lines NoNewLines"),
        ("up-lines-own", ("a.csv", b"short\n", "text/csv"), "lines Ok"),
        ("up-book", ("a.xlsx", b"none", XLSX), "book InvalidFormat"),
        ("up-book", ("a.xlsx", b"none", "video/x"), "book InvalidMimeType"),
    ],
)
def test_upload_handlers_accept_configured_files(
    service: Service, path: str, file: tuple[str, bytes, str], status: str
) -> None:
    (entry,) = upload(service, path, file)
    assert f"{entry['type']} {entry['status']}" == status
    assert entry["success"] is status.endswith(" Ok")


def test_uploaded_files_keep_their_names_in_an_existing_folder(service: Service, folder: Path) -> None:
    (entry,) = upload(service, "up-default", ("here.png", PNG, "image/png"))
    assert entry["filePath"] == f"{folder}/here.png"
    (entry,) = upload(service, "up-fs-own", ("a.txt", b"text", "text/plain"))
    assert entry["filePath"] == f"{folder}/mine.txt"
    assert (folder / "mine.txt").read_bytes() == b"text"
    (entry,) = upload(service, "up-fs", ("../no.txt", b"text", "text/plain"))
    assert (entry["filePath"], entry["success"]) == (f"{folder}/no.txt", False)
    assert not (folder / "no.txt").exists()


def test_upload_metadata_is_in_the_configured_session_variable(service: Service) -> None:
    (entry,) = upload(service, "up-kept", ("v.txt", b"text", "text/plain"))
    assert (entry["type"], entry["fileName"], entry["status"]) == ("fs", "v.txt", "Ok")


def test_first_accepting_upload_handler_stops_the_others(service: Service) -> None:
    entries = upload(service, "up-two", ("a.csv", b"a;b\n", "text/csv"), ("b.csv", b"\1\1;b\n", "text/csv"))
    assert [(item["type"], item["fileName"], item["status"]) for item in entries] == [
        ("lo", "a.csv", "Ok"),
        ("lo", "b.csv", "ProbablyBinary"),
        ("lines", "a.csv", "Ignored"),
        ("lines", "b.csv", "Ok"),
    ]


def test_csv_lines_are_split_as_configured(service: Service, database: Database) -> None:
    database.execute("truncate row_of")
    upload(service, "up-lines", ("a.csv", b'a;"b|c" ; \n', "text/csv"))
    upload(service, "up-lines-own", ("b.csv", b'a;,"b,"\n , \n', "text/csv"))
    assert [cells for (cells,) in database.fetch("select cells from row_of")] == [
        ["a", '"b', 'c"', ""],
        ["a;", "b,"],
        [None, None],
    ]


def test_row_metadata_has_claims_under_the_configured_key(service: Service, database: Database) -> None:
    database.execute("truncate row_of")
    (entry,) = upload(service, "up-lines", ("a.csv", b"a\n", "text/csv"), headers=with_cookie(service))
    assert list(entry)[-3:] == ["status", "who", "lastResult"]
    assert entry["who"]["user_id"] == "41"
    assert database.value("select about -> 'who' ->> 'user_name' from row_of") == "kiri"


def workbook() -> bytes:
    import datetime

    content = io.BytesIO()
    with xlsxwriter.Workbook(content) as book:
        for name in ("North", "South"):
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, [name, 1])
            sheet.write_datetime(0, 2, datetime.datetime(2026, 3, 1), book.add_format({"num_format": "yyyy-mm-dd"}))
    return content.getvalue()


@pytest.mark.slow
def test_sheets_are_read_as_configured(service: Service, database: Database) -> None:
    database.execute("truncate row_of")
    entries = upload(service, "up-book", ("q.xlsx", workbook(), XLSX))
    assert [(item["type"], item["sheet"], item["rows"], item["lastResult"]) for item in entries] == [
        ("book", "North", 1, 1),
        ("book", "South", 1, 1),
    ]
    assert [data for (data,) in database.fetch("select data from row_of")] == [
        {"A1": name, "B1": "1", "C1": "01.03.26"} for name in ("North", "South")
    ]
    (entry,) = upload(service, "up-book-own", ("q.xlsx", workbook(), XLSX))
    assert entry["sheet"] == "South"
    assert database.value("select cells from row_of where cells is not null") == ["South", "1", "01.03.26"]


def test_upload_logging_can_be_switched_off(service: Service) -> None:
    upload(service, "up-default", ("quiet.png", PNG, "image/png"))
    upload(service, "up-fs", ("loud.txt", b"text", "text/plain"))
    service.wait_for_log("loud.txt")
    assert "quiet.png" not in service.log


# --- nothing goes on -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def features_disabled(service: Service, database: Database, serve: Serve, prepared_upstream: Upstream) -> Service:
    proxy, handlers = "Service:ProxyOptions:", "Service:UploadOptions:UploadHandlers:"
    return serve(
        database,
        "",
        {
            proxy + "Enabled": "true",
            proxy + "ForwardHeaders": "false",
            proxy + "ForwardResponseHeaders": "false",
            "Service:UploadOptions:Enabled": "true",
            **{handlers + name + "Enabled": "false" for name in ("LargeObject", "FileSystem", "CsvUpload")},
        },
    )


def test_proxy_without_a_host_gets_500(features_disabled: Service) -> None:
    response: httpx.Response = features_disabled.get("/passed")
    assert response.status_code == 500
    assert "Proxy host is not configured" in response.text


def test_upload_has_no_effect_without_handlers(features_disabled: Service) -> None:
    assert features_disabled.post("/api/up-default", json={"files": [1]}).json() == [1]
    features_disabled.wait_for_log("`upload` has no effect")


@pytest.mark.parametrize(
    "context",
    cases([
        ("POST /direct {\"a\":1}", '201T None application/json {"a":1}', {"x-theirs": None, "etag": None, "x-mine": "1"}),
        ("GET /sent-out", "201T None application/json; charset=utf-8 7", {"x-theirs": None, "etag": None}),
        # Types are composites, and responses are not cached.
        ("GET /replied?rAnswer=a&rCode=5&rFine=true", "200T a|5|NULL|t|NULL"),
        ("GET /replied", "200T NULL|NULL"),
        ("GET /api/one/purge?a=x", "404 there is no endpoint"),
    ]),
)  # fmt: skip
def test_disabled_features_have_no_effect(features_disabled: Service, context: RequestContext) -> None:
    check(features_disabled, context, {"X-Other": "o"})


def test_responses_are_not_cached_if_caching_is_off(features_disabled: Service) -> None:
    assert len({features_disabled.get("/api/one?a=x").text for _ in range(3)}) == 3
