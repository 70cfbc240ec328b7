"""Files to start from: `--init` writes a configuration, and `new` an application."""

from __future__ import annotations

import re
import sys
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path

from rowcall.core.config.output.starter import starter
from rowcall.service.command.configuration_files import DEFAULT_FILES
from rowcall.service.command.switches import Arguments

TEMPLATES = ("accounts", "shop", "empty")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def write(arguments: Arguments) -> int:
    """Write a configuration file to begin with. An existing file is left unchanged; then, and if writing fails, return
    1.
    """
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


def create(arguments: Arguments) -> int:
    """Create a folder with an application to begin with. Return 1 if that is not possible: the template is unknown, the
    name is invalid, or writing fails. An existing folder is left unchanged; then, too, return 1.
    """
    (path,) = arguments.given["--new"]
    template = next(iter(arguments.given.get("--template", ())), "empty").lower()
    if template not in TEMPLATES:
        return _print_failure(f"there is no template {template!r}: name one of {', '.join(TEMPLATES)}")
    target = Path(path)
    if not _NAME.fullmatch(target.name):
        return _print_failure(f"{path!r} is no name of a folder: letters, digits, '.', '_' and '-' are possible")
    with as_file(files("rowcall.service.scaffold") / template) as source:
        try:
            _copy(source, target, target.name)
        except FileExistsError as error:
            return _print_failure(f"{error.filename} exists and is left as it is")
        except OSError as error:
            return _print_failure(f"{path} cannot be written: {error.strerror}")
    commands = "".join(f"\n  {line}" for line in _first_commands(target))
    print(f"{path} is written, from the template {template}. Go on:\n  cd {path}{commands}")
    return 0


def _copy(source: Traversable, target: Path, name: str) -> None:
    """Copy a template with its folders to `target`, which must not exist. name: of the application, which is filled
    into README.md. Raises OSError.
    """
    target.mkdir(parents=True)
    for item in source.iterdir():
        if item.is_dir():
            _copy(item, target / item.name, name)
        elif item.name == "README.md":
            (target / item.name).write_text(item.read_text(encoding="utf-8").replace("{name}", name), encoding="utf-8")
        else:
            (target / item.name).write_bytes(item.read_bytes())


def _first_commands(target: Path) -> list[str]:
    """Return the commands that the README of the application in the folder `target` shows."""
    readme = (target / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```bash\n(.*?)```", readme, re.DOTALL)
    return block[1].splitlines() if block else []


def _print_failure(message: str) -> int:
    """Print the message, and return the exit code of a failure."""
    print(f"rowcall: {message}", file=sys.stderr)
    return 1
