"""Child interpreters import nothing from the working directory, where clients may have written files."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowcall.service.interpreter import drop_working_directory, interpreter_command, interpreter_environment

ROOT = Path(__file__).parents[2]
STARTING = {"create_subprocess_exec", "create_subprocess_shell", "run", "Popen", "call", "check_call", "check_output"}
MODULES = {"asyncio", "subprocess", "os"}

INTERPRETERS = {
    "service/supervisor/processes/worker_process.py": {"cwd", "env"},
    # In the folder of the operator: its arguments may have relative paths.
    "service/supervisor/supervisor.py": {"env"},
    "service/uploads/row_commands/spreadsheet.py": {"cwd", "env"},
}
"""Files that start an interpreter, and what they have to say besides the command."""
OTHER_PROGRAMS = {
    "service/embedded/postgres.py",
    "service/supervisor/operators/profiling.py",
    "service/testing/preparation.py",
    "service/uploads/checking.py",
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("core", "ext", "service"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def starts(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
            continue
        exec_or_spawn = called.value.id == "os" and called.attr.startswith(("exec", "spawn", "posix_spawn", "system"))
        if exec_or_spawn or (called.value.id in {"asyncio", "subprocess"} and called.attr in STARTING):
            assert isinstance(node, ast.Call)
            if (called.value.id, called.attr) != ("asyncio", "run"):
                yield node


def names(call: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}


@pytest.mark.slow
def test_every_call_that_starts_a_program_is_listed() -> None:
    values = {name: list(starts(tree)) for name, tree in sources()}
    values = {name: calls for name, calls in values.items() if calls}
    assert set(values) == INTERPRETERS.keys() | OTHER_PROGRAMS
    for name, required in INTERPRETERS.items():
        for call in values[name]:
            assert "interpreter_command" in names(call), name
            keywords = {item.arg: ast.unparse(item.value) for item in call.keywords}
            # The environment may have additions of the caller.
            expected = {"cwd": "FOLDER", "env": "interpreter_environment()"}
            assert all(expected[key] in keywords.get(key, "") for key in required), name


@pytest.mark.slow
def test_only_one_module_names_the_interpreter_to_start_it() -> None:
    allowed = {"service/interpreter.py", "service/supervisor/operators/profiling.py"}
    naming = {
        name
        for name, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.executable", "sys._base_executable")
    }
    # py-spy is looked for beside the interpreter, and started by a path of its own.
    assert naming <= allowed
    multiprocessing = {name for name, tree in sources() if "multiprocessing" in names(tree)}
    assert not multiprocessing


@pytest.mark.parametrize("path", ["", ":", ".:", "{folder}", "{folder}:{folder}/"])
def test_a_child_does_not_import_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "orjson.py").write_text("raise SystemExit('imported from the working directory')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", path.format(folder=tmp_path))
    done = subprocess.run(
        interpreter_command("-c", "import orjson; print(orjson.dumps({}))"),
        env=interpreter_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("b'{}'\n", "")


def test_other_folders_of_pythonpath_are_preserved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["lib", "", str(ROOT)]))
    assert interpreter_environment()["PYTHONPATH"] == os.pathsep.join([str(tmp_path / "lib"), str(ROOT)])


def test_the_command_removes_the_working_directory_from_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = [str(tmp_path), "", "/usr/lib"]
    drop_working_directory(path)
    assert path == ["/usr/lib"]


@pytest.mark.slow
def test_a_command_does_not_import_from_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "lmdb.py").write_text("raise SystemExit('imported from the working directory')")
    code = "import sys; from rowcall.service import cli; cli.main(['--version']); import lmdb; print('harmless')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("harmless\n"), done
