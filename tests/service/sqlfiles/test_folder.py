"""Which files a pattern finds, spelled how, and what reading one of them may meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall.core.config import Settings, assemble
from rowcall.core.config.sections.sqlfiles import SqlFileOptions
from rowcall.core.config.tree import Section
from rowcall.core.endpoint.capabilities import CommentsMode
from rowcall.service.discovery.files import SIZE_LIMIT, find_files, read_text
from rowcall.service.options.sql_files import sql_file_options
from tests.harness.sql_files import write_files

_SECTION = "Service:SqlFileSource"


def settings(**keys: str) -> Settings:
    return assemble(Section(), [(f"{_SECTION}:{key}", value) for key, value in keys.items()], {}).settings


def options(**keys: str) -> SqlFileOptions:
    result = sql_file_options(settings(**keys))
    assert result is not None
    return result


def found_by(**keys: str) -> list[str]:
    chosen = options(**keys)
    return find_files(chosen.pattern, chosen.skip)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    names = ("b.sql", "a.sql", "a.test.sql", "A.SQL.bak", "sub/c.sql", "sub/deep/d.SQL", ".git/e.sql")
    write_files(tmp_path / "sql", dict.fromkeys(names, "select 1"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("sql/*.sql", ["sql/a.sql", "sql/b.sql"]),
        ("./sql/*.sql", ["./sql/a.sql", "./sql/b.sql"]),
        ("sql/**/*.sql", ["sql/a.sql", "sql/b.sql", "sql/sub/c.sql", "sql/sub/deep/d.SQL"]),
        ("**/d.sql", ["sql/sub/deep/d.SQL"]),
        ("./**/d.sql", ["./sql/sub/deep/d.SQL"]),
        ("sql/*/c.sql", []),
        ("sql/?.sql", ["sql/a.sql", "sql/b.sql"]),
        ("sql/a.test.sql", ["sql/a.test.sql"]),
        ("sql/none.sql", []),
        ("nowhere/**/*.sql", []),
    ],
)
def test_a_pattern_finds_files_in_order_with_their_actual_case(folder: Path, pattern: str, found: list[str]) -> None:
    assert found_by(FilePattern=pattern) == found


@pytest.mark.parametrize("skip", ["sql/sub/**", "./sql/sub/**", "*/sub/*", "./*/sub/*"])
def test_a_skip_pattern_applies_to_a_pattern_without_a_folder(folder: Path, skip: str) -> None:
    assert found_by(FilePattern="**/*.sql", SkipPattern=skip) == ["sql/a.sql", "sql/a.test.sql", "sql/b.sql"]


def test_a_skip_pattern_with_a_leading_folder_applies_to_a_pattern_without_one(folder: Path) -> None:
    """Not to the files at the top."""
    Path("top.sql").write_text("")
    assert found_by(FilePattern="**/*.sql", SkipPattern="*/sql/*") == ["top.sql"]
    assert found_by(FilePattern="**/*.sql", SkipPattern="*/*.sql") == ["top.sql"]
    assert found_by(FilePattern="sql/**/*.sql", SkipPattern="*/sql/*") != []


def test_an_empty_skip_pattern_skips_nothing(folder: Path) -> None:
    assert "sql/a.test.sql" in found_by(FilePattern="sql/*.sql", SkipPattern="")


def test_a_file_deleted_after_listing_is_ignored(folder: Path) -> None:
    (path, _) = found_by(FilePattern="sql/*.sql")
    Path(path).unlink()
    assert read_text(path, "sql") is None


def test_a_file_over_the_size_limit_is_an_error(folder: Path) -> None:
    path = folder / "sql" / "large.sql"
    path.write_text("-" * SIZE_LIMIT)
    read = read_text("sql/large.sql", "sql")
    assert read is not None
    assert read.error is None
    path.write_text("-" * (SIZE_LIMIT + 1))
    read = read_text("sql/large.sql", "sql")
    assert read is not None
    assert read.error == "it is larger than 16 MB"


def test_a_file_pattern_enables_files_and_enabled_can_disable_them() -> None:
    assert sql_file_options(settings()) is None
    assert sql_file_options(settings(Enabled="true")) is None
    assert sql_file_options(settings(FilePattern="a.sql", Enabled="false")) is None
    result = options(FilePattern="a.sql", CommentsMode="onlywithhttptag")
    assert (result.comments_mode, result.strict, result.folder) == (CommentsMode.ONLY_ANNOTATED, True, ".")
