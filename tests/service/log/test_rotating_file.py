"""The rotating file (logging-2 to logging-5): names, size, age, and a second process beside it."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from rowcall.service.log.entry import Entry
from rowcall.service.log.rotating_file import RotatingFile
from tests.harness.file_locks import refuse_locks

DAY = 86400
TODAY = time.time()


def entries(*messages: str, days: int = 0) -> list[Entry]:
    return [Entry(TODAY + days * DAY, logging.INFO, "rowcall", message) for message in messages]


def opened(folder: Path, limit: int | None = None, keep: int | None = None, *, roll: bool = True) -> RotatingFile:
    return RotatingFile(folder / "log.txt", lambda entry: entry.message + "\n", limit, keep, roll=roll)


def stamp(days: int = 0) -> str:
    return time.strftime("%Y%m%d", time.localtime(TODAY + days * DAY))


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_the_date_is_inserted_before_the_extension(tmp_path: Path) -> None:
    opened(tmp_path / "new" / "folder").write(entries("a"))
    assert texts(tmp_path / "new" / "folder") == {f"log{stamp()}.txt": "a\n"}


def test_a_new_day_begins_a_new_file(tmp_path: Path) -> None:
    opened(tmp_path).write([*entries("a"), *entries("b", days=1), *entries("late"), *entries("c", days=2)])
    assert texts(tmp_path) == {
        f"log{stamp()}.txt": "a\n",
        f"log{stamp(1)}.txt": "b\nlate\n",
        f"log{stamp(2)}.txt": "c\n",
    }


def test_a_full_file_is_followed_by_a_numbered_one(tmp_path: Path) -> None:
    file = opened(tmp_path, limit=6)
    file.write(entries("one", "two", "three"))
    file.write(entries("four"))
    assert texts(tmp_path) == {f"log{stamp()}.txt": "one\ntwo\n", f"log{stamp()}_001.txt": "three\n",
                               f"log{stamp()}_002.txt": "four\n"}  # fmt: skip


def test_without_rolling_a_full_file_is_closed_until_the_next_day(tmp_path: Path) -> None:
    opened(tmp_path, limit=6, roll=False).write([*entries("one", "two", "three"), *entries("four", days=1)])
    assert texts(tmp_path) == {f"log{stamp()}.txt": "one\ntwo\n", f"log{stamp(1)}.txt": "four\n"}


def test_a_restart_continues_the_last_file(tmp_path: Path) -> None:
    first = opened(tmp_path, limit=6)
    first.write(entries("one", "two", "three"))
    first.close()
    second = opened(tmp_path, limit=100)
    second.write(entries("four"))
    assert texts(tmp_path)[f"log{stamp()}_001.txt"] == "three\nfour\n"


def test_only_the_newest_files_are_retained(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("not one of ours")
    (tmp_path / "log20250101x.txt").write_text("nor this")
    opened(tmp_path, keep=2).write([*entries("a"), *entries("b", days=1), *entries("c", days=2)])
    assert sorted(texts(tmp_path)) == sorted(
        ["log.txt", "log20250101x.txt", f"log{stamp(1)}.txt", f"log{stamp(2)}.txt"]
    )


def test_a_file_that_was_moved_is_created_again(tmp_path: Path) -> None:
    file = opened(tmp_path)
    file.write(entries("a"))
    (tmp_path / f"log{stamp()}.txt").rename(tmp_path / "moved")
    file.write(entries("b"))
    assert texts(tmp_path) == {"moved": "a\n", f"log{stamp()}.txt": "b\n"}


def test_a_file_that_was_replaced_is_not_written_to_any_more(tmp_path: Path) -> None:
    file = opened(tmp_path)
    file.write(entries("a"))
    path = tmp_path / f"log{stamp()}.txt"
    path.rename(tmp_path / "moved")
    path.touch()
    file.write(entries("b"))
    assert texts(tmp_path) == {"moved": "a\n", path.name: "b\n"}


def test_two_writers_do_not_share_a_file(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path)
    first.write(entries("first"))
    second.write(entries("second"))
    assert texts(tmp_path) == {f"log{stamp()}.txt": "first\n", f"log{stamp()}_001.txt": "second\n"}


def test_a_file_system_without_locks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_locks(monkeypatch)
    with pytest.raises(OSError, match="No locks available"):
        opened(tmp_path)
    assert texts(tmp_path) == {f"log{stamp()}.txt": ""}


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        opened(tmp_path / "file" / "folder")
