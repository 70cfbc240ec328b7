"""The page about tests, run: its tests are files of a folder, and below a `$` stands what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.docs.pages import FOLDER, fits, read_page
from tests.harness.command import rowcall
from tests.harness.database import Database

_BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (?P<line>.*)\n(?P<output>(?:(?!^\$ ).*\n)*)", re.MULTILINE)


@pytest.mark.slow
def test_tests_of_the_manual_print_the_documented_output(own_database: Database, tmp_path: Path) -> None:
    path = FOLDER / "testing.md"
    own_database.execute(read_page(path).sql)
    wrong, code = [], 0
    for block in _BLOCK.finditer(path.read_text(encoding="utf-8")):
        if block["name"]:
            (tmp_path / block["name"]).parent.mkdir(exist_ok=True)
            (tmp_path / block["name"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "shell":
            for command in _COMMAND.finditer(block["text"]):
                printed = f"{code}\n"
                if command["line"] != "echo $?":
                    _, *words = shlex.split(command["line"])
                    done = rowcall(tmp_path, *words, f"--ConnectionStrings:Default={own_database.conninfo}")
                    printed, code = done.stderr + done.stdout, done.returncode
                if not fits(command["output"], printed):
                    wrong.append(f"$ {command['line']}\n{printed}")
    assert not wrong, "\n".join(wrong)
    database = f"--ConnectionStrings:Default={own_database.conninfo}"
    done = rowcall(tmp_path, "--test", "--TestRunner:Filter=statements", database)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    own_database.execute((tmp_path / "schema/harvest.sql").read_text(encoding="utf-8"))
    assert rowcall(tmp_path, "--install", database).returncode == 0
    done = rowcall(tmp_path, "--test", "--TestRunner:Filter=weigh", "--Jobs:Enabled=true", database)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "4 assertions" in done.stdout
