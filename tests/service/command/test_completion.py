"""--completion: the scripts, run by the shells they are for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rowcall.service.command.switches import SWITCHES
from tests.harness.command import rowcall


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        done = rowcall(folder, "--completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        (folder / shell).write_text(done.stdout)
    (folder / "shop.json").write_text("{}")
    (folder / "shop.txt").write_text("")
    return folder


def completed(folder: Path, line: str) -> list[str]:
    """What bash offers at the end of `line`, with its usual idea of words."""
    words = line.replace(":", " : ").replace("=", " = ").split() + ([""] if line.endswith(" ") else [])
    listed = " ".join(f"'{word}'" for word in words)
    program = f"""
    COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
    source ./bash
    COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=({listed}) COMP_CWORD={len(words) - 1}
    _rowcall 2>/dev/null
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    return sorted(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("rowcall --co", ["--completion", "--config", "--config-schema", "--console", "--contract"]),
        ("rowcall --completion ", ["bash", "fish", "zsh"]),
        ("rowcall --completion f", ["fish"]),
        ("rowcall sh", ["shop.json"]),
        ("rowcall --Url", ["--Urls="]),
        ("rowcall --Cor", ["--Cors:"]),
        ("rowcall --Config:E", ["EnvFile="]),
        ("rowcall --Service:RoutineOptions:N", ["NestedJsonForCompositeTypes="]),
        ("rowcall --validate --j", ["--json"]),
    ],
)
def test_bash_offers_switches_keys_and_files(scripts: Path, line: str, offered: list[str]) -> None:
    assert completed(scripts, line) == offered


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("rowcall --co", ["--completion", "--config", "--config-schema", "--console", "--contract"]),
        ("rowcall --completion ", ["bash", "fish", "zsh"]),
        ("rowcall --Config:E", ["--Config:EnvFile="]),
        ("rowcall sh", ["shop.json", "shop.txt"]),
    ],
)
def test_fish_offers_switches_keys_and_files(scripts: Path, line: str, offered: list[str]) -> None:
    program = f'source ./fish; complete -C "{line}"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", program], cwd=scripts, capture_output=True, text=True, check=True
    )
    assert sorted(row.split("\t")[0] for row in done.stdout.splitlines() if row) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_accepted_by_its_shell(scripts: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([program, "-n", shell], cwd=scripts, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_switch_is_offered(scripts: Path, shell: str) -> None:
    text = (scripts / shell).read_text()
    assert [switch.name for switch in SWITCHES if switch.name.removeprefix("--") not in text] == []


def test_an_unknown_shell_is_reported(tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--completion", "powershell")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "rowcall: powershell: no such shell; known are bash, zsh, fish\n"
