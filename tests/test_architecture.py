"""Dependencies point one way: service → ext, service → core. core and ext know neither each other nor service."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "core": {"core"},
    "ext": {"ext"},
    "service": {"service", "ext", "core"},
}
# core is data and pure functions: what could reach out is not even imported. (orjson is text in, data out.)
OUTSIDE = {
    "asyncio",
    "os",
    "pathlib",
    "socket",
    "subprocess",
    "threading",
    "time",
    "logging",
    "psycopg",
    "granian",
}


def sources(folder: str) -> list[Path]:
    return sorted(path for pattern in ("*.py", "*.pyi", "*.pyx", "*.pxd") for path in (ROOT / folder).rglob(pattern))


def imported_modules(path: Path) -> Iterator[str]:
    """Full names of imported modules; `from package import name` counts as both."""
    if path.suffix in (".py", ".pyi"):
        yield from _python_imports(path.read_text(encoding="utf-8"))
    else:
        yield from _cython_imports(path.read_text(encoding="utf-8"))


def _python_imports(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _cython_imports(text: str) -> Iterator[str]:
    for module, names in re.findall(r"^\s*from\s+([\w.]+)\s+c?import\s+\(?([\w ,*]*)", text, re.MULTILINE):
        yield module
        yield from (f"{module}.{name.strip()}" for name in names.split(",") if name.strip())
    for modules in re.findall(r"^\s*c?import\s+([\w., ]+)", text, re.MULTILINE):
        yield from (module.split(" as ")[0].strip() for module in modules.split(","))


@pytest.mark.parametrize("folder", ALLOWED)
def test_a_folder_imports_only_what_it_may_know(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources(folder)
        for module in imported_modules(path)
        if (inside := re.match(r"rowcall\.(\w+)", module)) and inside[1] not in ALLOWED[folder]
    ]
    assert wrong == []


def test_core_cannot_reach_the_world() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources("core")
        for module in imported_modules(path)
        if module.partition(".")[0] in OUTSIDE
    ]
    assert wrong == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for folder in ALLOWED
        for path in sources(folder)
        if path.suffix == ".py" and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("from rowcall.core.x cimport a, b", {"rowcall.core.x", "rowcall.core.x.a", "rowcall.core.x.b"}),
        ("from rowcall.ext cimport (a)\n", {"rowcall.ext", "rowcall.ext.a"}),
        ("cimport rowcall.service.y as z\nimport json", {"rowcall.service.y", "json"}),
    ],
)
def test_imports_of_cython_are_read(text: str, modules: set[str]) -> None:
    assert set(_cython_imports(text)) == modules
