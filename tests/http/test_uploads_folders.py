"""Files of clients never become code, configuration or SQL of the service."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import xlsxwriter

from rowcall.core.uploads.protected_folders import ProtectedFolder, ProtectedFolders
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

MODULE = "open({marker!r}, 'w').close()\nraise ImportError('imported from the working directory')\n"

SCHEMA = """
create table line (number int);
create function up_rows(_meta json) returns json language sql as 'select _meta';
comment on function up_rows(json) is 'HTTP POST
upload for excel
param _meta is upload metadata
row_command = insert into line values ($1)';
create function up_named(_path text, _meta json) returns json language sql as 'select _meta';
comment on function up_named(text, json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
path = {_path}
unique_name = false';
create function up_here(_meta json) returns json language sql as 'select _meta';
comment on function up_here(json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
file_system_path = .
unique_name = false';
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folder")
    files = folder / "sql"
    files.mkdir()
    (files / "one.sql").write_text("-- HTTP GET\nselect 1")
    return folder


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    settings = {
        "Service:UploadOptions:Enabled": "true",
        "Service:SqlFileSource:FilePattern": f"{folder}/sql/**/*.sql",
        "DataProtection:FileSystemPath": f"{folder}/keys",
    }
    return serve(database, SCHEMA, settings)


def test_a_module_in_the_working_directory_is_not_run(service: Service, tmp_path: Path) -> None:
    marker = tmp_path / "was-run"
    for name in ("orjson", "openpyxl", "zipfile", "rowcall"):
        (service.folder / f"{name}.py").write_text(MODULE.format(marker=str(marker)))
    content = io.BytesIO()
    with xlsxwriter.Workbook(content) as book:
        book.add_worksheet().write_row(0, 0, ["x"])
    response = service.post("/api/up-rows", files={"f": ("x.xlsx", content.getvalue())})
    assert response.status_code == 200, response.text
    assert response.json()[0]["success"] is True
    assert not marker.exists()


def test_request_values_cannot_name_a_folder_of_the_service(service: Service, folder: Path) -> None:
    link = folder / "link"
    link.symlink_to(service.folder)
    hostile = (
        service.folder,
        service.folder.parent,
        link,
        folder / "sql",
        folder / "sql" / "new",
        folder / "keys",
        "/",
    )
    for path in (*hostile, ".", "./"):
        response = service.post("/api/up-named", params={"path": str(path)}, files={"f": ("x.sql", b"select 1")})
        assert "must not be stored" in problem(response, 400)["detail"], path
    assert not (folder / "sql" / "new").exists()
    allowed = folder / "uploads"
    response = service.post("/api/up-named", params={"path": str(allowed)}, files={"f": ("x.sql", b"select 1")})
    assert response.status_code == 200, response.text
    assert (allowed / "x.sql").read_bytes() == b"select 1"


def test_an_endpoint_with_a_folder_of_the_service_is_left_out(service: Service) -> None:
    assert service.post("/api/up-here", files={"f": ("x.py", b"")}).status_code == 404
    assert "uploaded files must not be written into .: it is the working directory of the service" in service.log


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("UploadHandlers:FileSystemPath", "."),
        ("UploadHandlers:FileSystemPath", "/"),
        ("UploadHandlers:FileSystemPath", "{folder}"),
        ("UploadHandlers:FileSystemPath", "{folder}/sql"),
        ("Resumable:Path", "{folder}/.."),
    ],
)
def test_the_configuration_cannot_name_a_folder_of_the_service(
    database: Database, tmp_path: Path, key: str, path: str
) -> None:
    (tmp_path / "sql").mkdir()
    done = rowcall(
        tmp_path,
        "--validate",
        f"--ConnectionStrings:Default={database.conninfo}",
        "--Service:UploadOptions:Enabled=true",
        "--Service:SqlFileSource:FilePattern=sql/*.sql",
        f"--Service:UploadOptions:{key}={path.format(folder=tmp_path)}",
    )
    assert done.returncode == 1
    assert f"Service:UploadOptions:{key}: uploaded files must not be written into" in done.stdout + done.stderr


def test_conflicts_with_protected_folders_are_described() -> None:
    folders = ProtectedFolders(
        (ProtectedFolder("/app", "A"), ProtectedFolder("/app/sql", "B", tree=True), ProtectedFolder("/lib", "C"))
    )
    assert folders.conflict("/app") == "it is A"
    assert folders.conflict("/") == "it contains A (/app)"
    assert folders.conflict("/app/sql/deep") == "it is inside B (/app/sql)"
    assert folders.conflict("/app/uploads") is None
    assert folders.conflict("/app/sql-uploads") is None
    assert folders.conflict("/lib/") == "it is C"
