"""The hidden folders of requests that store files."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall.core.uploads.protected import ProtectedFolders
from rowcall.service.uploads.folders import Folders, remove_orphaned_files
from tests.harness.file_locks import refuse_locks


def test_a_file_system_without_locks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_locks(monkeypatch)
    with pytest.raises(OSError, match="No locks available"):
        Folders(ProtectedFolders(())).begin(str(tmp_path), create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_locked_folder_is_no_orphan(tmp_path: Path) -> None:
    folders = Folders(ProtectedFolders(()))
    folders.begin(str(tmp_path), create=False).target.close()
    assert not remove_orphaned_files(str(tmp_path))
    folders.undo()
    assert remove_orphaned_files(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
