"""The hidden folders of requests that store files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from rowcall.core.uploads.protected_folders import ProtectedFolders
from rowcall.service.uploads import folders
from rowcall.service.uploads.folders import Folders, remove_orphaned_files
from tests.harness.file_locks import refuse_locks


def test_tracking_many_folders_takes_limited_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_LOOKED_AFTER", 5)
    monkeypatch.setattr(Folders, "_looked_after", set[str]())
    for number in range(12):
        request = Folders(ProtectedFolders(()))
        request.begin(str(tmp_path / str(number)), create=True).place("x")
        request.finish()
        assert len(Folders._looked_after) <= 5
    assert str(tmp_path / "11") in Folders._looked_after


class KilledError(Exception):
    """Ends a function as the end of the process would."""


def request_with_two_files(folder: Path) -> Folders:
    """Replace `a`, and store `b`."""
    (folder / "a").write_text("before")
    request = Folders(ProtectedFolders(()))
    for name in ("a", "b"):
        file = request.begin(str(folder), create=False)
        file.target.write(b"new")
        file.place(name)
    return request


def contents_after_kill(folder: Path, request: Folders) -> dict[str, str]:
    for hidden in request._open.values():
        assert hidden._lock is not None
        os.close(hidden._lock)
    assert remove_orphaned_files(str(folder))
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("steps", range(4))
def test_a_request_killed_while_settling_has_all_files_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    request = request_with_two_files(tmp_path)
    left = list(range(steps))

    def interrupted(function: str) -> None:
        original = getattr(os, function)

        def run(*arguments: object, **options: object) -> object:
            if not left:
                raise KilledError
            left.pop()
            return original(*arguments, **options)

        monkeypatch.setattr(os, function, run)

    with contextlib.suppress(KilledError):
        for function in ("unlink", "rename", "fsync"):
            interrupted(function)
        request.settle()
    monkeypatch.undo()
    assert contents_after_kill(tmp_path, request) in ({"a": "before"}, {"a": "new", "b": "new"})


def test_a_request_killed_after_settling_has_its_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    request = request_with_two_files(tmp_path)
    request.settle()
    assert contents_after_kill(tmp_path, request) == {"a": "new", "b": "new"}
    assert "its files stay, although it may have been rolled back: a, b" in caplog.text


def test_files_left_by_a_kill_between_two_folders_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    request = Folders(ProtectedFolders(()))
    for folder in (first, second):
        file = request.begin(str(folder), create=True)
        file.target.write(b"new")
        file.place("a\nb")
    request._open[str(first)].settle()
    assert contents_after_kill(first, request) == {"a\nb": "new"}
    assert remove_orphaned_files(str(second))
    assert list(second.iterdir()) == []
    stays, removed = [record.getMessage() for record in caplog.records]
    assert stays.startswith(f"{first}: a worker was ended")
    assert "\n" not in stays
    assert removed.startswith(f"{second}: files of 1 uploads that were cut off")


def test_a_request_that_fails_after_settling_leaves_no_files(tmp_path: Path) -> None:
    request = request_with_two_files(tmp_path)
    request.settle()
    request.undo()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "before"}


def test_a_file_system_without_locks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_locks(monkeypatch)
    with pytest.raises(OSError, match="No locks available"):
        Folders(ProtectedFolders(())).begin(str(tmp_path), create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_locked_folder_is_not_removed_as_orphan(tmp_path: Path) -> None:
    folders = Folders(ProtectedFolders(()))
    folders.begin(str(tmp_path), create=False).target.close()
    assert not remove_orphaned_files(str(tmp_path))
    folders.undo()
    assert remove_orphaned_files(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
