"""Layers as shown by imports: permitted imports, the order of folders, and the number of files in a folder.

All imports count, also under TYPE_CHECKING and in functions, because a reader has to follow all of them.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "core": {"core"},
    "ext": {"ext"},
    "service": {"service", "ext", "core"},
}
# core is data and pure functions, so modules with I/O must not be imported. (orjson is text in, data out.)
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


def imported_modules(path: Path) -> tuple[str, ...]:
    """Return the full names of imported modules; `from package import name` counts as both."""
    return _imports_and_docstring(path)[0]


@cache
def _imports_and_docstring(path: Path) -> tuple[tuple[str, ...], str | None]:
    text = path.read_text(encoding="utf-8")
    if path.suffix not in (".py", ".pyi"):
        return tuple(_cython_imports(text)), None
    tree = ast.parse(text)
    return tuple(_python_imports(tree)), ast.get_docstring(tree)


def _python_imports(tree: ast.Module) -> Iterator[str]:
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Return all statements of a module. Expressions, which are most of its nodes, contain none."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            if isinstance(child, ast.stmt):
                yield child
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
                waiting.append(child)


def _cython_imports(text: str) -> Iterator[str]:
    for module, names in re.findall(r"^\s*from\s+([\w.]+)\s+c?import\s+\(?([\w ,*]*)", text, re.MULTILINE):
        yield module
        yield from (f"{module}.{name.strip()}" for name in names.split(",") if name.strip())
    for modules in re.findall(r"^\s*c?import\s+([\w., ]+)", text, re.MULTILINE):
        yield from (module.split(" as ")[0].strip() for module in modules.split(","))


ORDER = {
    "core": (
        "text data sections errors catalogue outgoing endpoint",
        "http binding tables formats protection auth accounts events operations cache limits uploads downloads "
        "postgrest batch jobs webhooks",
        "annotations sqlfile queryable building codegen documents mcp testing",
        "config",
    ),
    "ext": ("base response_cache", "http1", "binding rendering", "driver"),
    "service": (
        "startup_error background file_changes interpreter",
        "sockets request_context shared_state http_client database discovery log protection identity installation",
        "options pipeline",
        "response request",
        "auth accounts sqlfiles cache limits outgoing uploads downloads events static codegen mcp operations metrics "
        "tracing testing encryption postgrest queryable idempotency batch tenancy jobs webhooks",
        "handler",
        "snapshot console supervisor worker",
        "embedded manual command cli",
    ),
}
"""From the lowest layer up. Folders may import from those before them, also in the same line."""
CAPABILITIES = frozenset(ORDER["service"][4].split())
"""Folders of service that must not import each other; common code belongs in a lower folder."""
MOST_FILES = 14


@pytest.mark.parametrize("top", ORDER)
def test_folders_import_downwards_only(top: str) -> None:
    order = [name for line in ORDER[top] for name in line.split()]
    wrong = [
        f"{module} imports {imported}"
        for module, imports in modules_of(top).items()
        for imported in imports
        if room(module) != room(imported) and order.index(room(imported)) > order.index(room(module))
    ]
    assert wrong == []


def test_capabilities_do_not_know_each_other() -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, imports in modules_of("service").items()
        for imported in imports
        if room(module) in CAPABILITIES and room(imported) in CAPABILITIES and room(module) != room(imported)
    ]
    assert wrong == []


@pytest.mark.parametrize("top", ORDER)
def test_no_imports_go_round_in_a_circle(top: str) -> None:
    modules = modules_of(top)
    try:
        tuple(TopologicalSorter(modules).static_order())
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


@pytest.mark.parametrize("top", ORDER)
def test_every_folder_can_be_overlooked(top: str) -> None:
    """Folders `rows` are excluded: they have one module for each part of a table."""
    crowded = [
        f"{folder.relative_to(ROOT)}: {len(modules)}"
        for folder in (ROOT / top, *(path for path in (ROOT / top).rglob("*") if path.is_dir()))
        if folder.name not in ("rows", "sections", "__pycache__")
        and len(modules := {path.stem for path in sources_in(folder)} - {"__init__"}) > MOST_FILES
    ]
    assert crowded == []


def sources_in(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if path.suffix in (".py", ".pyi", ".pyx", ".pxd", ".h"))


def room(module: str) -> str:
    """Return the folder below `core`, `ext` or `service`; for a module without folder, its own name."""
    return module.split(".")[2]


@cache
def modules_of(top: str) -> dict[str, set[str]]:
    """Return the modules with those of the same top folder that they import.

    A package is its own `__init__`; modules inside it that name it on the way to a neighbour do not import it.
    """
    paths: dict[str, list[Path]] = {}
    for path in sources(top):
        name = ".".join(("rowcall", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        paths.setdefault(name, []).append(path)
    modules = {
        name: {
            module
            for path in files
            for module in _known(imported_modules(path), paths)
            if not f"{name}.".startswith(f"{module}.")
        }
        for name, files in paths.items()
    }
    return {name: imports for name, imports in modules.items() if name.count(".") > 1}


def _known(imported: Iterable[str], paths: Collection[str]) -> Iterator[str]:
    return (name for name in imported if name in paths and name.count(".") > 1)


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
        if path.suffix == ".py" and not _imports_and_docstring(path)[1]
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


def test_imported_packages_are_dependencies() -> None:
    """A package that only the tests need must not be imported, and a dependency has to be imported somewhere."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"].values()
    required = {_distribution(item) for item in project["dependencies"]}
    declared = required | {_distribution(item) for group in optional for item in group}
    providers = packages_distributions()
    modules = {name.partition(".")[0] for top in ALLOWED for path in sources(top) for name in imported_modules(path)}
    foreign = sorted(modules - sys.stdlib_module_names - {"rowcall", "", "libc", "cpython", "cython"})
    imported = {module: {_distribution(name) for name in providers.get(module, ())} for module in foreign}
    assert [module for module, names in imported.items() if names and not names & declared] == []
    assert required - {name for names in imported.values() for name in names} == set()


def _distribution(requirement: str) -> str:
    """Return the normalized name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~;\s]", requirement, maxsplit=1)[0]).lower()
