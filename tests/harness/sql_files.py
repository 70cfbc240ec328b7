"""Folders of .sql files for the service to serve."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_SECTION = "Service:SqlFileSource:"


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Name below the folder → text. Gives the folder."""
    for name, text in files.items():
        save(folder / name, text)
    return folder


def save(path: Path, text: str | bytes) -> None:
    """As editors save: written beside the file, and moved over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.fresh")
    fresh.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.replace(fresh, path)


def file_settings(folder: Path, **changes: str) -> dict[str, str]:
    """Configuration keys that serve the folder; `changes` by name of the key."""
    return {_SECTION + "FilePattern": f"{folder}/**/*.sql"} | {_SECTION + key: value for key, value in changes.items()}
