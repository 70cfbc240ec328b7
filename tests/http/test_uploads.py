"""Uploads by the four handlers: what the routine receives, what is stored, what a client sees (uploads-1 to
uploads-25)."""

from __future__ import annotations

import concurrent.futures
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

File = tuple[str, bytes, str]
"""Name, content, content type."""

SCHEMA = """
create table line (number int, cells text[], previous text, about json, who text);
create function keep_line(int, text[], text, json) returns int language sql as
    $$ insert into line values ($1, $2, $3, $4, current_setting('request.user_id', true)) returning number $$;
create procedure keep_quietly(int, text[], text, json) language sql as
    $$ insert into line values ($1, $2, $3, $4) $$;
create table metadata (about text);

create function up_default(_meta json) returns json language sql as 'select _meta';
comment on function up_default(json) is 'HTTP POST
upload
param _meta is upload metadata';
create function up_object(_meta jsonb) returns jsonb language sql as 'select _meta';
comment on function up_object(jsonb) is 'HTTP
upload for large_object
param _meta is upload metadata
large_object_excluded_mime_types = image/gif';
create function up_oid(_oid int, _meta text) returns text language sql as 'select _meta';
comment on function up_oid(int, text) is 'HTTP POST
upload for large_object
upload _meta as metadata
oid = {_oid}';
create function up_files(_meta json) returns json language sql as 'select _meta';
comment on function up_files(json) is 'HTTP POST
upload for file_system
upload _meta as metadata';
create function up_named(_path text, _file text, _unique_name boolean, _create_path boolean, _meta json default null)
    returns json language sql as 'select _meta';
comment on function up_named(text, text, boolean, boolean, json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
path = {_path}
file = {_file}
unique_name = {_unique_name}
create_path = {_create_path}';
create function up_failed(_path text, _meta json default null) returns json language plpgsql as
    $$ begin raise exception 'not these' using errcode = 'P0001'; end $$;
comment on function up_failed(text, json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
path = {_path}
create_path = true';
create function up_kept(_path text, _meta json) returns json language sql as 'select _meta';
comment on function up_kept(text, json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
file_system_path = {_path}
unique_name = false';
create function up_refused(_path text, _meta json) returns json language plpgsql as
    $$ begin raise exception 'not these' using errcode = 'P0001'; end $$;
comment on function up_refused(text, json) is 'HTTP POST
upload for file_system, csv
param _meta is upload metadata
path = {_path}
unique_name = false
row_command = select keep_line($1, $2, $3, $4)';
create function up_late_refused(_path text, _meta json) returns json language plpgsql as
    $$ begin perform pg_advisory_xact_lock_shared(77); raise exception 'not these'; end $$;
comment on function up_late_refused(text, json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
path = {_path}
unique_name = false';
create table kept (at timestamptz default now());
create function up_recorded(_path text, _meta json) returns void language sql as 'insert into kept default values';
comment on function up_recorded(text, json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
path = {_path}';
create function up_instead(_path text, _meta json) returns json language sql as 'select _meta';
comment on function up_instead(text, json) is 'HTTP POST
upload for csv
param _meta is upload metadata
fallback_handler = file_system
file_system_path = {_path}
row_command = select 1';
create function up_checked(_meta json) returns json language sql as 'select _meta';
comment on function up_checked(json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
check_text = true';
create function up_images(_meta json) returns json language sql as 'select _meta';
comment on function up_images(json) is 'HTTP POST
upload for large_object
param _meta is upload metadata
check_image = png, exe, jpg';
create function up_csv(_meta json) returns json language sql as 'select _meta';
comment on function up_csv(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
row_command = select keep_line($1, $2, $3::text, $4)';
create function up_quietly(_meta json) returns json language sql as 'select _meta';
comment on function up_quietly(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
delimiters = ,;
row_command = call keep_quietly($1, $2, $3, $4)';
create function up_pairs(_tag text, _meta json) returns json language sql as 'select _meta';
comment on function up_pairs(text, json) is 'HTTP POST
upload for csv
param _meta is upload metadata
csv_check_format = false
row_command = insert into line (number, cells, previous) values ($1, $2, ''tag '' || {_tag} || ''-{_tag}'')';
create function up_typed(_meta json) returns json language sql as 'select _meta';
comment on function up_typed(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
row_command = select jsonb_build_object(''n'', $1::int)';
create function up_failing_rows(_meta json) returns json language sql as 'select _meta';
comment on function up_failing_rows(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
row_command = insert into line (number) values (10 / (3 - $1))';
create function up_fallback(_meta json) returns json language sql as 'select _meta';
comment on function up_fallback(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
fallback_handler = large_object
row_command = select keep_line($1, $2, $3, $4)';
create function up_both(_meta json) returns json language sql as 'select _meta';
comment on function up_both(json) is 'HTTP POST
upload for large_object, csv
param _meta is upload metadata
stop_after_first_success = true
large_object_included_mime_types = image/*
row_command = select keep_line($1, $2, $3, $4)';
create function up_nothing() returns void language sql as
    $$ insert into metadata values (current_setting('request.upload_metadata', true)) $$;
comment on function up_nothing() is 'HTTP POST
upload for large_object';
create function up_named_by_default(_upload_metadata json) returns json language sql as 'select _upload_metadata';
comment on function up_named_by_default(json) is 'HTTP POST
upload for large_object';
create function up_strict(_meta json) returns json language sql strict as 'select _meta';
comment on function up_strict(json) is 'HTTP POST
upload for large_object
param _meta is upload metadata';
create function up_needy(_a int, _meta json) returns json language sql as 'select _meta';
comment on function up_needy(int, json) is 'HTTP GET
upload for large_object
param _meta is upload metadata';
create table late (id int primary key, other int references late deferrable initially deferred);
create function up_late(_path text, _meta json) returns void language sql as 'insert into late values (1, 2)';
comment on function up_late(text, json) is 'HTTP POST
upload for file_system, large_object
param _meta is upload metadata
path = {_path}
unique_name = false';
create function up_by_default(_meta json) returns json language sql as 'select _meta';
comment on function up_by_default(json) is 'HTTP POST
upload for csv
param _meta is upload metadata';
create table pair (number int unique, sku text, count int, who text);
create function add_pair(_n int, _cells text[], _previous bigint, _about jsonb) returns bigint language plpgsql as
    $$ begin
        insert into pair values (_n, _cells[1], _cells[2]::int, _about ->> 'fileName');
        return coalesce(_previous, 0) + _cells[2]::int;
    end $$;
create function up_sums(_meta json) returns json language sql as 'select _meta';
comment on function up_sums(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
row_command = select add_pair($1, $2, $3, $4)';
create function up_inserts(_who text, _meta json) returns json language sql as 'select _meta';
comment on function up_inserts(text, json) is 'HTTP POST
upload for csv
param _meta is upload metadata
row_command = insert into pair values ($1, $2[1], ($2)[2]::int, {_who})';
create domain short as text check (length(value) < 40);
create table shop (
    number int, sku varchar(20) not null, title short, price numeric(6, 2),
    bought date default '2020-02-02', about text default 'nothing', id int generated always as identity
);
create function price_up() returns trigger language plpgsql as
    $$ begin new.price := new.price + 1; return new; end $$;
create trigger price_up before insert on shop for each row execute function price_up();
create function up_shop(_meta json) returns json language sql as 'select _meta';
comment on function up_shop(json) is 'HTTP POST
upload for csv
csv_check_format = false
param _meta is upload metadata
row_command = insert into shop values ($1, coalesce($2[1], ''?''), ($2)[4], $2[2]::numeric)';
create function up_needs(_meta json) returns json language sql as 'select _meta';
comment on function up_needs(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
row_command = insert into shop (number, sku) values ($1, nullif($2[1], ''-''))';
create function up_shop_alone(_meta json) returns json language sql as 'select _meta';
comment on function up_shop_alone(json) is 'HTTP POST
upload for csv
csv_check_format = false
param _meta is upload metadata
row_command = with alone as (select 1) insert into shop values ($1, coalesce($2[1], ''?''), ($2)[4], $2[2]::numeric)';
create function up_upper(_meta json) returns json language sql as 'select _meta';
comment on function up_upper(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
row_command = select upper(($2)[1]) || $1';
create sequence noted;
create function up_noted(_meta json) returns json language sql as 'select _meta';
comment on function up_noted(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
row_command = select nextval(''noted'') -- once for each row';
create sequence ended;
create function up_ended(_meta json) returns json language sql as 'select _meta';
comment on function up_ended(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
row_command = select nextval(''ended''); -- once for each row';
create function up_lasts(_meta json) returns json language sql as 'select _meta';
comment on function up_lasts(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
row_command = select $2[1] || $1';
create function up_sets(_meta json) returns json language sql as 'select _meta';
comment on function up_sets(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
row_command = select generate_series($1, $1 + 1)';
"""

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Service:
    text = "-- HTTP POST\n-- upload for large_object\nbegin;\nselect 1;\ncommit;"
    settings = {
        **file_settings(write_files(tmp_path_factory.mktemp("sql"), {"committed.sql": text})),
        "Service:UploadOptions:Enabled": "true",
        "Service:UploadOptions:UseDefaultUploadMetadataParameter": "true",
        "Service:UploadOptions:UseDefaultUploadMetadataContextKey": "true",
        "Service:UploadOptions:UploadHandlers:FileSystemPath": str(folder),
        "Service:Deadlines:RequestHeaders:0": "grpc-timeout",
    }
    return serve(database, SCHEMA, settings, workers=2)


def upload(service: Service, path: str, *files: File) -> Any:
    """The metadata that the routine gave back."""
    response = send(service, path, files)
    assert response.status_code == 200, response.text
    return response.json()


def send(service: Service, path: str, files: Sequence[File]) -> Any:
    return service.post(f"/api/{path}", files=[("file", file) for file in files])


def object_bytes(database: Database, oid: int) -> bytes:
    return bytes(database.value("select lo_get(%s)", oid))


def test_upload_in_the_transaction_of_a_file_that_commits_is_left_out(service: Service) -> None:
    problem(send(service, "committed", [("a.txt", b"a", "text/plain")]), 404)
    assert "may commit, which ends the transaction that its uploads share" in service.log


# --- large objects --------------------------------------------------------------------------------------------------


def test_the_default_handler_creates_large_objects(service: Service, database: Database) -> None:
    big = bytes(range(256)) * 4096
    entries = upload(service, "up-default", ("a.bin", big, "application/x-one"), ("b.txt", b"", "text/plain"))
    assert [list(entry) for entry in entries] == [
        ["type", "fileName", "contentType", "size", "success", "status", "oid"]
    ] * 2
    first, second = entries
    assert (first["type"], first["fileName"], first["contentType"], first["size"]) == (
        "large_object",
        "a.bin",
        "application/x-one",
        len(big),
    )
    assert (first["success"], first["status"], second["size"]) == (True, "Ok", 0)
    assert object_bytes(database, first["oid"]) == big
    assert object_bytes(database, second["oid"]) == b""


def test_an_excluded_type_is_reported(service: Service) -> None:
    (entry,) = upload(service, "up-object", ("x.gif", b"GIF89a", "image/gif"))
    assert entry == {
        "type": "large_object",
        "fileName": "x.gif",
        "contentType": "image/gif",
        "size": 6,
        "success": False,
        "status": "InvalidMimeType",
        "oid": None,
    }


def test_a_parameter_can_choose_the_oid_of_the_object(service: Service) -> None:
    response = send(service, "up-oid?oid=777001", [("x", b"abc", "text/plain")])
    assert response.headers["content-type"] == "text/plain"
    assert response.text == (
        '[{"type":"large_object","fileName":"x","contentType":"text/plain","size":3,"success":true,'
        '"status":"Ok","oid":777001}]'
    )
    again = problem(send(service, "up-oid?oid=777001", [("x", b"abc", "text/plain")]), 409)
    assert again["title"] == "There is such a record already"
    assert again["detail"] == "23505"
    assert " WRN] " in service.wait_for_log("lo_create: 23505: ")


def test_images_are_recognised_by_their_first_bytes(service: Service) -> None:
    entries = upload(
        service,
        "up-images",
        ("a.png", PNG, "image/png"),
        ("b.jpg", b"\xff\xd8\xff\xe0 rest of it", "image/jpeg"),
        ("c.gif", b"GIF89a rest of it", "image/gif"),
        ("d.png", b"no image at all", "image/png"),
        ("e.png", b"", "image/png"),
    )
    assert [entry["status"] for entry in entries] == ["Ok", "Ok", "InvalidImage", "InvalidImage", "InvalidImage"]
    service.wait_for_log("exe is none of the image types bmp, gif, jpeg, jpg, png")


# --- folders --------------------------------------------------------------------------------------------------------


def test_files_get_a_unique_name(service: Service, folder: Path) -> None:
    response = send(service, "up-files", [("cv.pdf", b"%PDF", "application/pdf")])
    (entry,) = response.json()
    path = Path(entry["filePath"])
    assert path.parent == folder
    assert path.suffix == ".pdf"
    assert path.stem != "cv"
    assert path.read_bytes() == b"%PDF"
    assert response.text == (
        f'[{{"type":"file_system","fileName":"cv.pdf","contentType":"application/pdf","size":4,'
        f'"filePath":"{path}","success":true,"status":"Ok"}}]'
    )


def test_request_values_choose_folder_and_file_name(service: Service, tmp_path: Path) -> None:
    query = f"path={tmp_path}/new&file=this.csv&uniqueName=false&createPath=true"
    (entry,) = upload(service, f"up-named?{query}", ("other.txt", b"1,2", "text/csv"))
    assert entry["filePath"] == f"{tmp_path}/new/this.csv"
    assert (tmp_path / "new" / "this.csv").read_bytes() == b"1,2"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["this.csv"]


def test_a_failed_upload_removes_the_folders_that_it_has_created(service: Service, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    problem(send(service, f"up-failed?path={tmp_path}/there/new/deep", [("x", b"1", "text/plain")]), 400)
    assert list(tmp_path.rglob("*")) == [tmp_path / "there"]


def test_a_missing_folder_is_an_error(service: Service, tmp_path: Path) -> None:
    query = f"path={tmp_path}/no&file=x&uniqueName=false&createPath=false"
    result = problem(send(service, f"up-named?{query}", [("x", b"1", "text/plain")]), 500)
    assert result["title"] == "Internal Server Error"
    assert f"{tmp_path}/no" in result["detail"]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("../../escape.txt", "escape.txt"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\x\\cv.doc", "cv.doc"),
        ("..", "file"),
        ("a/..", "file"),
        ("CON.txt", "_CON.txt"),
        ("ünï.txt", "ünï.txt"),
        ("x" * 300 + ".txt", "x" * 251 + ".txt"),
        (".rowcall-mine", "_.rowcall-mine"),
        ("sp ace;semi.txt", "sp ace;semi.txt"),
    ],
)
def test_file_names_of_clients_cannot_leave_the_folder(
    service: Service, tmp_path: Path, sent: str, stored: str
) -> None:
    (entry,) = upload(service, f"up-kept?path={tmp_path}", (sent, b"text", "text/plain"))
    assert entry["filePath"] == f"{tmp_path}/{stored}"
    assert [path.name for path in tmp_path.iterdir()] == [stored]


def test_a_path_with_parent_segments_is_refused(service: Service, tmp_path: Path) -> None:
    problem(send(service, f"up-kept?path={tmp_path}/../up", [("x", b"1", "text/plain")]), 400)
    assert not (tmp_path.parent / "up").exists()


def test_a_fallback_handler_refuses_a_path_with_parent_segments(service: Service, tmp_path: Path) -> None:
    problem(send(service, f"up-instead?path={tmp_path}/../up", [("x", b"\0", "text/plain")]), 400)
    assert not (tmp_path.parent / "up").exists()


@pytest.mark.parametrize("name", [".rowcall-mine", ".rowcall-mine/in", "in/.rowcall-mine"])
def test_a_path_with_the_name_of_a_hidden_folder_is_refused(service: Service, tmp_path: Path, name: str) -> None:
    problem(
        send(
            service,
            f"up-named?path={tmp_path}/{name}&file=x&uniqueName=false&createPath=true",
            [("x", b"1", "text/plain")],
        ),
        400,
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("before", [None, "before"])
def test_a_failed_upload_leaves_the_file_that_another_one_has_stored(
    service: Service, database: Database, tmp_path: Path, before: str | None
) -> None:
    if before is not None:
        (tmp_path / "x.txt").write_text(before)
    with concurrent.futures.ThreadPoolExecutor(1) as threads, database.locked(77):
        first = threads.submit(send, service, f"up-late-refused?path={tmp_path}", [("x.txt", b"first", "text/plain")])
        wait_until(database.waiting, "the first routine to wait")
        upload(service, f"up-kept?path={tmp_path}", ("x.txt", b"second", "text/plain"))
    problem(first.result(), 400)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x.txt", "second")]


def test_an_upload_that_ends_at_its_deadline_leaves_all_files_or_none(
    service: Service, database: Database, tmp_path: Path
) -> None:
    files = [("file", ("x.txt", b"text", "text/plain"))] * 5

    def run(number: int) -> None:
        headers = {"grpc-timeout": f"{10 + number % 30}m"}
        response = service.post(f"/api/up-recorded?path={tmp_path}/{number % 3}", files=files, headers=headers)
        assert response.status_code in (204, 504)

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(run, range(240)))
    wait_until(lambda: not list(tmp_path.rglob(".rowcall-*")), "the hidden folders are removed")
    assert len(list(tmp_path.rglob("*.txt"))) == 5 * database.value("select count(*) from kept")


def test_a_link_in_the_folder_is_replaced_and_not_followed(service: Service, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "x.txt").symlink_to(outside)
    upload(service, f"up-kept?path={inside}", ("x.txt", b"theirs", "text/plain"))
    assert outside.read_text() == "mine"
    assert (inside / "x.txt").read_bytes() == b"theirs"
    assert not (inside / "x.txt").is_symlink()


def test_an_existing_file_is_overwritten(service: Service, tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        upload(service, f"up-kept?path={tmp_path}", ("x.txt", content, "text/plain"))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x.txt", b"two")]


def test_a_failed_routine_rolls_back_files_and_rows(service: Service, database: Database, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("before")
    files = [("old.csv", b"a,b\n", "text/csv"), ("new.csv", b"c,d\n", "text/csv")]
    result = problem(send(service, f"up-refused?path={tmp_path}", files), 400)
    assert result["title"] == "not these"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old.csv", "before")]
    assert database.value("select count(*) from line where cells[1] in ('a', 'c')") == 0


def test_a_failed_commit_rolls_back_files_and_objects(service: Service, database: Database, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("before")
    files = [("old.csv", b"a,b\n", "text/csv"), ("new.csv", b"c,d\n", "text/csv")]
    objects = database.value("select count(*) from pg_largeobject_metadata")
    assert send(service, f"up-late?path={tmp_path}", files).status_code == 409
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old.csv", "before")]
    assert database.value("select count(*) from pg_largeobject_metadata") == objects


def test_text_files_are_distinguished_from_binary_files(service: Service) -> None:
    entries = upload(
        service,
        "up-checked",
        ("a.txt", b"one\ntwo\nthree\n\n\n\n\n\n", "text/plain"),
        ("b.txt", b"", "text/plain"),
        ("c.txt", b"a\x00b", "text/plain"),
        ("d.txt", b"\x01\x02\x03\x04\x05\x06", "text/plain"),
        ("e.txt", b"\x01\x02\x03\x04\x05", "text/plain"),
    )
    assert [entry["status"] for entry in entries] == ["Ok", "Empty", "ProbablyBinary", "ProbablyBinary", "Ok"]
    assert [Path(entry["filePath"]).exists() for entry in entries] == [True, False, False, False, True]


# --- csv ------------------------------------------------------------------------------------------------------------


def test_an_error_of_a_row_command_names_the_column(service: Service) -> None:
    members = problem(send(service, "up-needs", [("x.csv", b"-,1\n", "text/csv")]), 400)
    assert members["title"] == "A value is missing in column 'sku'"


def test_each_line_runs_the_command(service: Service, database: Database) -> None:
    database.execute("truncate line")
    text = b'id,name\r\n1, "a ""b"", c" \n\n2,\n'
    (entry,) = upload(service, "up-csv", ("s.csv", text, "text/csv"))
    assert entry == {
        "type": "csv",
        "fileName": "s.csv",
        "contentType": "text/csv",
        "size": len(text),
        "success": True,
        "status": "Ok",
        "lastResult": 4,
    }
    assert database.fetch("select number, cells, previous from line order by number") == [
        (1, ["id", "name"], None),
        (2, ["1", 'a "b", c'], "1"),
        (3, None, "2"),
        (4, ["2", None], "3"),
    ]
    about = database.value("select about from line limit 1")
    assert list(about) == ["type", "fileName", "contentType", "size", "success", "status"]
    assert about["size"] == len(text)


def test_row_commands_run_in_order(service: Service, database: Database) -> None:
    database.execute("truncate line")
    text = "".join(f"{n};x\n" for n in range(1, 3001)).encode()
    (entry,) = upload(service, "up-quietly", ("s.csv", text, "text/csv"))
    assert (entry["lastResult"], entry["size"]) == (None, len(text))
    assert database.fetch("select count(*), count(previous), bool_and(number::text = cells[1]) from line") == [
        (3000, 0, True)
    ]


PAIRS = "".join(f'"SKU ""{n}""\\",{n % 10}\n' for n in range(1, 2001)).encode()


def test_each_row_command_receives_the_result_of_the_previous_one(service: Service, database: Database) -> None:
    database.execute("truncate pair")
    (entry,) = upload(service, "up-sums", ("s.csv", PAIRS, "text/csv"))
    assert entry["lastResult"] == 9000
    assert database.fetch(
        "select count(*), min(number), max(number), sum(count),"
        " bool_and(sku = format(E'SKU \"%s\"\\\\', number)), min(who) from pair"
    ) == [(2000, 1, 2000, 9000, True, "s.csv")]


def test_thousands_of_rows_are_inserted(service: Service, database: Database) -> None:
    database.execute("truncate pair")
    (entry,) = upload(service, "up-inserts?who=it's", ("s.csv", PAIRS + b"\nlast,7", "text/csv"))
    assert entry["lastResult"] is None
    assert database.fetch("select count(*), count(sku), sum(count), min(who), max(number) from pair") == [
        (2002, 2001, 9007, "it's", 2002)
    ]


SHOP = "".join(
    ["a\n", ",\n", "\n", '"q ""x"", \\",1.234,,"{t,\\}",5\n', "NULL,2,3,null\n", '"NULL",,"","é\u00a0"\n']
    + [f"s{n},{n / 8},x,{'t' * (n % 30)}\n" for n in range(300)]
).encode()  # fmt: skip


def test_batched_rows_are_stored_as_single_rows_are(service: Service, database: Database) -> None:
    """Rows of any width, defaults, a trigger, a domain, casts: as where each row runs alone."""
    stored = []
    for path in ("up-shop", "up-shop-alone"):
        database.execute("truncate shop restart identity")
        upload(service, path, ("s.csv", SHOP * 3, "text/csv"))
        stored.append(database.fetch("select * from shop order by id"))
    assert stored[0] == stored[1]
    assert len(stored[0]) == 3 * 306


@pytest.mark.parametrize(
    ("row", "status", "title"),
    [
        (b"a,many", 400, 'invalid input syntax for type numeric: "many"'),
        (b"a,99999", 400, "numeric field overflow"),
        (b"a,1,2," + b"t" * 50, 400, "A value is not allowed"),
        (b"a" * 21, 400, "value too long for type character varying(20)"),
    ],
)
def test_an_error_in_a_batch_is_that_of_the_single_row(
    service: Service, database: Database, row: bytes, status: int, title: str
) -> None:
    database.execute("truncate shop")
    files = [("s.csv", SHOP + row + b"\n", "text/csv")]
    values = [problem(send(service, path, files), status) for path in ("up-shop", "up-shop-alone")]
    assert title in values[0]["title"]
    assert values[0]["title"] == values[1]["title"]
    assert database.value("select count(*) from shop") == 0


def test_an_error_in_a_late_row_rolls_back_all_rows(service: Service, database: Database) -> None:
    database.execute("truncate pair")
    for path in ("up-sums", "up-inserts?who=x"):
        result = problem(send(service, path, [("s.csv", PAIRS + b"x,many\n", "text/csv")]), 400)
        assert result["title"] == 'invalid input syntax for type integer: "many"'
    assert database.value("select count(*) from pair") == 0


@pytest.mark.parametrize(
    ("path", "last"), [("up-lasts", 'SKU "2000"\\2000'), ("up-upper", 'SKU "2000"\\2000'), ("up-sets", 2000)]
)
def test_the_result_of_the_last_row_is_returned(service: Service, path: str, last: object) -> None:
    (entry,) = upload(service, path, ("s.csv", PAIRS, "text/csv"))
    assert entry["lastResult"] == last


@pytest.mark.parametrize("path", ["up-noted", "up-ended"])
def test_a_command_that_ends_with_a_comment_runs_for_each_row(service: Service, path: str) -> None:
    (entry,) = upload(service, path, ("s.csv", PAIRS, "text/csv"))
    assert entry["lastResult"] == 2000


def test_a_request_value_cannot_inject_sql_into_the_row_command(service: Service, database: Database) -> None:
    database.execute("truncate line")
    send(service, "up-pairs?tag='; drop table line; --", [("s.csv", b"a", "text/csv")])
    assert database.fetch("select number, cells, previous from line") == [
        (1, ["a"], "tag '; drop table line; ---'; drop table line; --")
    ]


def test_a_result_of_another_type_is_returned_as_text(service: Service) -> None:
    (entry,) = upload(service, "up-typed", ("s.csv", b"a\nb\n", "text/csv"))
    assert entry["lastResult"] == '{"n": 2}'


@pytest.mark.parametrize(
    ("content", "status"),
    [(b"", "Empty"), (b"a,b", "NoNewLines"), (b"a,b\rc,d\r", "NoNewLines"), (b"\0,b\n", "ProbablyBinary")],
)
def test_a_file_that_is_not_csv_is_reported(service: Service, content: bytes, status: str) -> None:
    (entry,) = upload(service, "up-csv", ("s.csv", content, "text/csv"))
    assert entry == {
        "type": "csv",
        "fileName": "s.csv",
        "contentType": "text/csv",
        "size": len(content),
        "success": False,
        "status": status,
    }


def test_unbalanced_quotes_are_an_error_with_the_line(service: Service, database: Database) -> None:
    database.execute("truncate line")
    result = problem(send(service, "up-csv", [("s.csv", b'a,b\n"c,d\n', "text/csv")]), 500)
    assert result["title"] == "Internal Server Error"
    assert "line 2" in result["detail"]
    assert database.value("select count(*) from line") == 0


def test_an_error_of_a_row_command_rolls_back_previous_rows(service: Service, database: Database) -> None:
    database.execute("truncate line")
    result = problem(send(service, "up-failing-rows", [("s.csv", b"a\nb\nc\nd\n", "text/csv")]), 500)
    assert (result["title"], result["detail"]) == ("22012: division by zero", "22012")
    assert database.value("select count(*) from line") == 0
    (entry,) = upload(service, "up-failing-rows", ("s.csv", b"a\nb\n", "text/csv"))
    assert entry["lastResult"] is None


def test_a_missing_row_command_is_an_error(service: Service) -> None:
    for _ in range(2):
        result = problem(send(service, "up-by-default", [("s.csv", b"a\nb\n", "text/csv")]), 500)
        assert result["title"].startswith("42883: procedure process_csv_row(")


# --- several handlers -----------------------------------------------------------------------------------------------


def test_files_refused_by_one_handler_are_stored_by_the_next(service: Service, database: Database) -> None:
    database.execute("truncate line")
    entries = upload(service, "up-fallback", ("a.csv", b"a,b\n", "text/csv"), ("b.bin", b"\0\0", "x/y"))
    assert [entry["type"] for entry in entries] == ["csv", "large_object"]
    assert object_bytes(database, entries[1]["oid"]) == b"\0\0"
    assert database.value("select count(*) from line") == 1


def test_a_file_is_stored_by_one_handler_only(service: Service, database: Database) -> None:
    database.execute("truncate line")
    entries = upload(service, "up-both", ("a.png", PNG, "image/png"), ("b.csv", b"a,b\n", "text/csv"))
    assert [(entry["type"], entry["fileName"], entry["status"]) for entry in entries] == [
        ("large_object", "a.png", "Ok"),
        ("large_object", "b.csv", "InvalidMimeType"),
        ("csv", "a.png", "Ignored"),
        ("csv", "b.csv", "Ok"),
    ]


# --- the request ----------------------------------------------------------------------------------------------------


def test_metadata_is_available_as_a_setting(service: Service, database: Database) -> None:
    assert send(service, "up-nothing", [("x", b"1", "text/plain")]).status_code == 204
    (about,) = json.loads(database.value("select about from metadata"))
    assert about["fileName"] == "x"


def test_the_configured_parameter_receives_the_metadata(service: Service) -> None:
    (entry,) = upload(service, "up-named-by-default", ("x", b"1", "text/plain"))
    assert entry["status"] == "Ok"


def test_a_request_value_cannot_replace_the_metadata(service: Service) -> None:
    (entry,) = upload(service, "up-strict?meta=null", ("x", b"1", "text/plain"))
    assert entry["fileName"] == "x"


def test_without_files_the_metadata_is_empty(service: Service) -> None:
    boundary = {"content-type": "multipart/form-data; boundary=b"}
    assert service.post("/api/up-strict", content=b"--b--\r\n", headers=boundary).json() == []
    field = b'--b\r\ncontent-disposition: form-data; name="a"\r\n\r\ntext\r\n--b--\r\n'
    assert service.post("/api/up-both", content=field, headers=boundary).json() == []
    nothing = b'--b\r\ncontent-disposition: form-data; name="file"; filename=""\r\n\r\n\r\n--b--\r\n'
    assert service.post("/api/up-default", content=nothing, headers=boundary).json() == []
    assert service.post("/api/up-default", data={"a": "b"}).json() == []


def test_invalid_forms_are_refused(service: Service) -> None:
    response = problem(service.post("/api/up-default", json={"a": 1}), 415)
    assert "Incorrect Content-Type" not in service.log
    assert response["detail"].startswith("Incorrect Content-Type: application/json")
    problem(service.post("/api/up-default", content=b"x", headers={"content-type": "multipart/form-data"}), 400)
    cut = b'--b\r\ncontent-disposition: form-data; name="a"; filename="x"\r\n\r\ntext'
    headers = {"content-type": "multipart/form-data; boundary=b"}
    assert "ends in the middle" in problem(service.post("/api/up-default", content=cut, headers=headers), 400)["detail"]


def test_a_compressed_form_is_refused(service: Service) -> None:
    headers = {"content-type": "multipart/form-data; boundary=b", "content-encoding": "gzip"}
    response = problem(service.post("/api/up-default", content=gzip.compress(b"--b--\r\n"), headers=headers), 415)
    assert "Content-Encoding 'gzip'" in response["detail"]


def test_parameters_are_checked_before_files_are_stored(service: Service, database: Database) -> None:
    objects = database.value("select count(*) from pg_largeobject_metadata")
    problem(send(service, "up-needy", [("x", b"1", "text/plain")]), 404)
    assert database.value("select count(*) from pg_largeobject_metadata") == objects
    (entry,) = upload(service, "up-needy?a=1", ("x", b"1", "text/plain"))
    assert entry["type"] == "large_object"
    assert "uploads require POST" in service.log


def test_a_body_that_is_too_large_is_refused(service: Service) -> None:
    problem(send(service, "up-default", [("x", bytes(30_000_001), "x/y")]), 413)


def test_an_extended_filename_parameter_is_decoded(service: Service) -> None:
    headers = {"content-type": "multipart/form-data; boundary=b"}
    part = b"--b\r\ncontent-disposition: form-data; name=f; filename*=UTF-8''na%C3%AFve%20%22x%22\r\n\r\n1\r\n--b--\r\n"
    response = service.post("/api/up-default", content=part, headers=headers)
    (entry,) = response.json()
    assert (entry["fileName"], entry["contentType"]) == ('naïve "x"', "")
    assert '"fileName":"naïve \\"x\\"","contentType":""' in response.text


def test_a_nul_is_removed_from_an_extended_filename(service: Service) -> None:
    headers = {"content-type": "multipart/form-data; boundary=b"}
    part = b"--b\r\ncontent-disposition: form-data; name=f; filename*=UTF-8''a%00b.txt\r\n\r\n1\r\n--b--\r\n"
    (entry,) = service.post("/api/up-default", content=part, headers=headers).json()
    assert entry["fileName"] == "ab.txt"


def test_uploads_annotated_with_get_are_served_by_post(service: Service) -> None:
    assert service.get("/api/up-needy?a=1").status_code == 405


@pytest.mark.parametrize(("size", "status"), [(40_000, 200), (41_000, 431), (150_000, 431)])
def test_the_header_limit_is_independent_of_the_upload_chunk_size(service: Service, size: int, status: int) -> None:
    files = [("file", ("a.txt", b"a", "text/plain"))]
    response = service.post("/api/up-default", headers={"x-large": "y" * size}, files=files)
    assert response.status_code == status
    if status == 431:
        assert response.json()["detail"] == "the request line and the headers are larger than 40960 bytes together"


def test_request_line_and_headers_share_one_limit(service: Service) -> None:
    assert service.get("/api/up-default?a=" + "y" * 30_000, headers={"x": "y" * 12_000}).status_code == 431
