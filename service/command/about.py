"""`--help`, `--version` and `--annotations` (command-8); and output that other switches share."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from rowcall.core.annotations import CATALOGUE
from rowcall.service.command.switches import SWITCHES, Arguments

_TAGLINE = "PostgreSQL routines as HTTP endpoints"
_HELP = (
    ("rowcall", "Serve the database that rowcall.json and rowcall.local.json describe, where they exist."),
    ("rowcall FILE [FILE …]", "Read these configuration files instead, in order; a later one wins."),
    ("rowcall FILE -o FILE", "-o or --optional: the next file may be missing."),
    (
        "rowcall --Section:Key=value",
        "Override any configuration key. The order is: defaults, files, environment, command line; the later one wins.",
    ),
    ("", ""),
)
_EXAMPLES = (
    ("rowcall base.json -o local.json", "Two files, of which the second may be missing."),
    (
        "rowcall --Urls=http://0.0.0.0:8080 --ConnectionStrings:Default=postgresql://me@db/shop",
        "No file at all: where to listen, and which database to serve.",
    ),
    ("rowcall --config cache", "All keys about caching, with their effective values."),
)
_LEFT = 32
_PARTS = ("granian", "psycopg", "psycopg-c", "orjson")
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}


def version() -> str:
    return importlib.metadata.version("rowcall")


def banner() -> None:
    """Print the banner; it precedes text for users, never output for programs (command-3)."""
    print(f"\nrowcall: {_TAGLINE}\n")


def show_help(_arguments: Arguments) -> int:
    banner()
    print("Usage:")
    print_rows((*_HELP, *((switch.usage, switch.meaning) for switch in SWITCHES)))
    print("\nExamples:")
    print_rows(_EXAMPLES)
    return 0


def show_versions(arguments: Arguments) -> int:
    """Print the versions of the service and of its parts; with `--json`, as JSON."""
    runtime = (platform.python_implementation(), platform.python_version())
    folders = {"currentDirectory": str(Path.cwd()), "baseDirectory": str(Path(__file__).parents[1])}
    if arguments.has("--json"):
        print_json(
            {
                "runtime": {"name": runtime[0], "version": runtime[1]},
                "platform": _platform(),
                "versions": _versions(),
                **folders,
            }
        )
        return 0
    banner()
    print("Versions:")
    print_rows(
        (
            runtime,
            ("", ""),
            *_versions().items(),
            ("", ""),
            *((name[0].upper() + name[1:], folder) for name, folder in folders.items()),
        )
    )
    return 0


def _versions() -> dict[str, str]:
    """Return the versions of the service and of the libraries that it mostly depends on, by name."""
    versions = {"rowcall": version()}
    for name in _PARTS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {**versions, "libpq": _libpq()}


def _libpq() -> str:
    """Return the version of the libpq that serves requests, which the Cython modules were built against."""
    from rowcall.ext.base import libpq

    return f"{libpq.version // 10000}.{libpq.version % 10000}"


def _platform() -> str:
    """Return system and processor, such as `linux-x64`."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"


def show_annotations(_arguments: Arguments) -> int:
    """Print all annotations as JSON, without any other output."""
    print_json(listing())
    return 0


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Print rows as two columns in a terminal, tab-separated otherwise (command-4)."""
    if not sys.stdout.isatty():
        for left, right in rows:
            print(f"{left}\t{right}".strip())
        return
    columns = max(shutil.get_terminal_size().columns, _LEFT + 30)
    for left, right in rows:
        lines = textwrap.wrap(right, columns - _LEFT - 4) or [""]
        if len(left) > _LEFT:
            print(f"  \x1b[33m{left}\x1b[0m")
            left = ""
        print(f"  \x1b[33m{left:<{_LEFT}}\x1b[0m  {lines[0]}")
        for line in lines[1:]:
            print(f"{'':<{_LEFT + 4}}{line}")


def listing() -> list[Mapping[str, str | Sequence[str]]]:
    """Return an entry for each annotation: `name`, `aliases` (the accepted keywords; empty for an annotation without
    one, which is recognized by the form of its line), `syntax`, `description`."""
    return [
        {
            "name": annotation.name,
            "aliases": annotation.aliases,
            "syntax": annotation.syntax,
            "description": annotation.description,
        }
        for annotation in CATALOGUE
    ]
