"""Folders into which no uploaded file may be written: those with code, configuration, keys or SQL files of the service.

Paths here are absolute, without `..` and without symbolic links; the caller resolves them.
"""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.data.record import Record


@dataclass(frozen=True, slots=True)
class ProtectedFolder(Record):
    """A folder into which no uploaded file may be written."""

    path: str
    content: str
    """Content of the folder, for messages: "the working directory"."""
    tree: bool = False
    """Whether the folders below are protected too."""


@dataclass(frozen=True, slots=True)
class ProtectedFolders:
    """All folders into which no uploaded file may be written."""

    entries: tuple[ProtectedFolder, ...] = ()

    def conflict(self, folder: str) -> str | None:
        """Return why uploaded files must not be written into `folder`, as a clause for messages; None: they may be.

        A folder is refused if it is a protected one, is below one whose entry has `tree`, or contains one, because a
        later request may name a path below it. Folders below a protected one without `tree` are allowed. folder:
        absolute, without `..` and symbolic links (`os.path.realpath`); only texts are compared.
        """
        for entry in self.entries:
            if _same_path(folder, entry.path):
                return f"it is {entry.content}"
            if _is_below(entry.path, folder):
                return f"it contains {entry.content} ({entry.path})"
            if entry.tree and _is_below(folder, entry.path):
                return f"it is inside {entry.content} ({entry.path})"
        return None


def _same_path(left: str, right: str) -> bool:
    return left.rstrip("/") == right.rstrip("/")


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")
