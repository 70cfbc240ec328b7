"""The commands of the manual, run: what stands below a `$` is what they print.

On a page, ```json NAME and ```ini NAME blocks are files of a folder of its own, as they come; ```console blocks hold
commands and their output, that of stderr first. `…` stands for any text.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.pages import FOLDER, PATHS, fits
from tests.harness.command import rowcall

_BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (?P<line>.*)\n(?P<output>(?:(?!^\$ ).*\n)*)", re.MULTILINE)
_ASSIGNMENT = re.compile(r"(?P<name>\w+)=(?P<value>.*)")
PAGES = [path.relative_to(FOLDER).as_posix() for path in PATHS if "```console" in path.read_text(encoding="utf-8")]


@dataclass
class Terminal:
    """A folder, and the exit code of the last command in it."""

    folder: Path
    code: int = 0

    def run(self, line: str) -> str:
        words = shlex.split(line)
        if words == ["echo", "$?"]:
            return f"{self.code}\n"
        environment = {}
        while (assignment := _ASSIGNMENT.fullmatch(words[0])) is not None:
            environment[assignment["name"]] = assignment["value"]
            words.pop(0)
        assert words.pop(0) == "rowcall"
        done = rowcall(self.folder, *words, **environment)
        self.code = done.returncode
        return done.stderr + done.stdout if done.stdout != BANNER else done.stdout + done.stderr


BANNER = "\nrowcall: PostgreSQL routines as HTTP endpoints\n\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_commands_print_the_documented_output(name: str, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    wrong = []
    for block in _BLOCK.finditer((FOLDER / name).read_text(encoding="utf-8")):
        if block["name"]:
            (tmp_path / block["name"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "console":
            for command in _COMMAND.finditer(block["text"]):
                printed = terminal.run(command["line"])
                if not fits(command["output"], printed):
                    wrong.append(f"$ {command['line']}\n{printed}")
    assert not wrong, "\n".join(wrong)
