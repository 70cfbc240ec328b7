"""Start Python interpreters as child processes that import nothing from the working directory.

Python searches modules in the working directory first (`python -m`, empty entries of PYTHONPATH). If clients can have
written files there, such a module would run as the service. Therefore every interpreter is started by
`interpreter_command` with `interpreter_environment`, and in the folder `/` unless it needs the folder of the operator.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableSequence

FOLDER = "/"
"""Working directory of child interpreters."""


def interpreter_command(*arguments: str) -> tuple[str, ...]:
    """Return a command that runs this interpreter and adds neither the working directory nor the folder of a script to
    `sys.path`.

    `-I` would also ignore PYTHONPATH, by which some installations find this package.
    """
    return (sys.executable, "-P", *arguments)


def interpreter_environment() -> dict[str, str]:
    """Return the environment, with the folders of PYTHONPATH made absolute and without the working directory."""
    environment = dict(os.environ)
    folders = [os.path.abspath(entry) for entry in environment.pop("PYTHONPATH", "").split(os.pathsep) if entry]
    folders = [folder for folder in folders if not _is_working_directory(folder)]
    if folders:
        environment["PYTHONPATH"] = os.pathsep.join(folders)
    return environment


def drop_working_directory(path: MutableSequence[str]) -> None:
    """Remove the working directory from `sys.path`: the first entry, which `python -m` adds, and empty entries.

    path: `sys.path`.
    """
    if path and not sys.flags.safe_path and _is_working_directory(path[0] or "."):
        del path[0]
    path[:] = [entry for entry in path if entry]


def _is_working_directory(folder: str) -> bool:
    try:
        return os.path.samefile(folder, os.curdir)
    except OSError:
        return False
