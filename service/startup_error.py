"""The error of a failed start. `service.cli` prints it and ends with exit code 1."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class StartupError(Exception):
    """The service cannot start. The message says why and what to do about it; it never contains a password."""


START_AGAIN = -1
"""Used instead of an exit code: the configuration has changed, so the service starts again."""


def require_folder(key: str, folder: str | Path) -> None:
    """Raise `StartupError` if a folder does not exist or this user cannot reach it. key: of the configuration, which
    names the folder.
    """
    try:
        is_folder = stat.S_ISDIR(os.stat(folder).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a path with NUL
        is_folder = False
    except OSError as error:
        raise StartupError(f"{key}: the folder {folder} cannot be reached: {error.strerror}") from None
    if not is_folder:
        raise StartupError(f"{key}: there is no folder {folder}")
