"""Files of requests in folders that requests name."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall.core.uploads.protected import ProtectedFolders
from rowcall.service.uploads import folders
from rowcall.service.uploads.folders import Folders


def test_any_number_of_folders_takes_limited_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_LOOKED_AFTER", 5)
    monkeypatch.setattr(Folders, "_looked_after", set[str]())
    for number in range(12):
        request = Folders(ProtectedFolders(()))
        request.begin(str(tmp_path / str(number)), create=True).place("x")
        request.finish()
        assert len(Folders._looked_after) <= 5
    assert str(tmp_path / "11") in Folders._looked_after
