"""`--init`: write a starter configuration file."""

from __future__ import annotations

import sys
from pathlib import Path

from rowcall.core.config.output.starter import starter
from rowcall.service.command.configuration_files import DEFAULT_FILES
from rowcall.service.command.switches import Arguments


def write(arguments: Arguments) -> int:
    """Write the file. An existing file is left unchanged; then, and if writing fails, return 1."""
    name = "".join(arguments.given["--init"]) or DEFAULT_FILES[0]
    try:
        with Path(name).open("x", encoding="utf-8") as file:
            file.write(starter())
    except FileExistsError:
        print(f"rowcall: {name} exists and is left as it is", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"rowcall: {name} cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{name} is written. Set ConnectionStrings in it, or PGDATABASE, and start: rowcall {name}")
    return 0
