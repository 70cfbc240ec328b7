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


@pytest.mark.parametrize("exists", [True, False])
def test_files_beside_a_client_that_must_not_be_overwritten_are_not_removed(tmp_path: Path, exists: bool) -> None:
    client, hooks = tmp_path / "client.ts", tmp_path / "hooks.ts"
    if exists:
        client.write_text("own client", encoding="utf-8")
        hooks.write_text("own hooks", encoding="utf-8")
    outputs = [Output(str(client), "client", overwrite=False), Output(str(hooks), "hooks", beside=str(client))]

    def files(*_arguments: object, **_options: object) -> Iterator[Output]:
        yield from outputs

    options = cast(Any, SimpleNamespace(path=str(client), types=True))
    writer = ClientFiles(replace(next(clients_of(options, None, None)), files=files))
    assert asyncio.run(writer.write([], cast(Any, None), cast(Any, None)))
    outputs.clear()
    assert asyncio.run(writer.write([], cast(Any, None), cast(Any, None)))
    assert hooks.read_text(encoding="utf-8") == ("own hooks" if exists else "hooks")
    assert client.read_text(encoding="utf-8") == ("own client" if exists else "client")
