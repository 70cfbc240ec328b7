"""Files of clients on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rowcall.core.codegen.selection import Output
from rowcall.service.codegen.writing import ClientFiles, clients_of


def test_a_file_that_cannot_be_deleted_becomes_a_comment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refuse)
    path = tmp_path / "client"
    options = cast(Any, SimpleNamespace(path=str(path), types=True))

    def files(*_arguments: object, **_options: object) -> Iterator[Output]:
        yield Output(str(path), None)

    texts = {}
    for client in clients_of(options, options, options):
        path.write_text("old", encoding="utf-8")
        assert asyncio.run(ClientFiles(replace(client, files=files)).write([], cast(Any, None), cast(Any, None)))
        texts[client.language] = path.read_text(encoding="utf-8")
    slashes = "// No endpoints found.\n"
    assert texts == {"TypeScript": slashes, "Dart": slashes, "Python": "# No endpoints found.\n"}
