"""Folders with .sql files for the service."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_SECTION = "Service:SqlFileSource:"


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write the texts by their names in the folder, and return the folder."""
    for name, text in files.items():
        save(folder / name, text)
    return folder


def save(path: Path, text: str | bytes) -> None:
    """Save like an editor: written to another file, and moved to the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.fresh")
    fresh.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.replace(fresh, path)


def file_settings(folder: Path, **changes: str) -> dict[str, str]:
    """Return the configuration that serves the folder; `changes` by name of the key."""
    return {_SECTION + "FilePattern": f"{folder}/**/*.sql"} | {_SECTION + key: value for key, value in changes.items()}
