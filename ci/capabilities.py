"""The table of capabilities in CONTRIBUTING.md, read from the declarations of the code.

A declaration belongs to the capability that its module or its folder is named after. Modules, metrics and pages with
another name than their capability are in `NAMES`, `OF_METRICS` and `PAGES`; nothing else is written by hand.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

from rowcall.core.annotations import GROUPS
from rowcall.core.config import table
from rowcall.core.operations.exposition import FORMER_GAUGES
from rowcall.core.sections.declaration import keys_of
from rowcall.core.sections.keys import Key
from rowcall.service.handler.step_order import STEPS
from rowcall.service.metrics.report import Processes, gauges, read_counts
from rowcall.service.supervisor.operators.admin import supervisor_families
from rowcall.service.supervisor.operators.postgrest_admin import postgrest_families

ROOT = Path(__file__).parents[1]
SERVICE = ROOT / "service"
BEGIN = "<!-- capabilities: written by ci/write_docs.py -->\n"
END = "<!-- end of capabilities -->"

NAMES = {
    "client_code": "codegen",
    "access": "auth",
    "accounts.lockout": "auth",
    "accounts.password_rules": "auth",
    "auth.antiforgery": "auth",
    "auth.passkeys": "auth",
    "connections": "database",
    "data_protection": "protection",
    "documents": "codegen",
    "external": "auth",
    "handler": "execution",
    "http.compression": "response_compression",
    "identity": "auth",
    "operations.static_files": "static",
}
"""Module of declarations, or folder of `service` → capability."""

PAGES = {
    "browsers": ("auth", "cors", "security_headers"),
    "caching": ("cache",),
    "calling-out": ("outgoing",),
    "contract": ("codegen",),
    "dart": ("codegen",),
    "endpoints": ("exposure",),
    "health-and-statistics": ("operations",),
    "host-store": ("cache",),
    "logging": ("log",),
    "many-hosts": ("database", "deadlines"),
    "metrics-and-traces": ("metrics", "tracing"),
    "openapi": ("codegen",),
    "optimistic-locking": ("tables",),
    "passwords": ("auth",),
    "performance": ("database",),
    "profiling": ("metrics",),
    "proxies": ("outgoing",),
    "python": ("codegen",),
    "queries": ("queryable",),
    "requests": ("param", "parameters", "request"),
    "responses": ("response",),
    "schedules": ("jobs",),
    "second-factor": ("auth",),
    "sessions": ("auth",),
    "signing-in-with-others": ("auth",),
    "sql-files": ("sqlfiles",),
    "tenants": ("tenancy",),
    "typescript": ("codegen",),
    "users-and-claims": ("auth",),
    "what-comes-back": ("response",),
}
"""Page of the manual → capabilities, where it is not named after its capability, or belongs to several."""

GENERAL_PAGES = frozenset(
    {
        "annotations",
        "audit",
        "coming-from-npgsqlrest",
        "configuration",
        "index",
        "production",
        "running",
        "scale",
        "security",
        "tutorial",
    }
)
"""Pages of the manual that are about no single capability."""

OF_METRICS = {
    "pgrst": "postgrest",
    "requests_limited": "limits",
    "requests_overloaded": "database",
    "retries": "errors",
    "sign_ins": "auth",
    "upstream": "outgoing",
}
"""Words in the names of metrics → capability, where they differ from its name."""


@dataclass
class Capability:
    name: str
    annotations: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    routes: list[str] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)


def capability_of(name: str) -> str:
    return NAMES.get(name, name.rpartition(".")[2])


def config_modules() -> dict[str, tuple[Key, ...]]:
    """Return the keys by module of their sections: `core.accounts.lockout` is `accounts.lockout`, and
    `core.accounts.options` is `accounts`.
    """
    modules: dict[str, tuple[Key, ...]] = {}
    for section in table.SECTIONS:
        *_, folder, module = section.__module__.split(".")
        name = {"options": folder}.get(module, module if folder == "sections" else f"{folder}.{module}")
        modules[name] = (*modules.get(name, ()), *keys_of(section))
    return modules


@cache
def capabilities() -> tuple[Capability, ...]:
    """Return all capabilities with what is declared for them, by name."""
    rows: dict[str, Capability] = {}

    def row(name: str) -> Capability:
        return rows.setdefault(capability_of(name), Capability(capability_of(name)))

    for module, group in GROUPS.items():
        row(module).annotations += [item.name for item in group]
    for module, section in sections():
        row(module).sections.append(section)
    known = {*rows, *GROUPS, *config_modules()}
    for step in STEPS:
        row(_name_in(step.__module__.split("."), known)).steps.append(step.__name__)
    for name, function in routes():
        row(_name_in(name.split("."), known)).routes.append(function)
    for metric in metrics():
        row(_of_metric(metric, rows)).metrics.append(metric)
    for name, extra in extras():
        row(name).extras.append(extra)
    named = {name.rpartition(".")[2].replace("_", "-"): (name,) for name in {*GROUPS, *config_modules(), *rows}}
    for path in sorted((ROOT / "docs").glob("*.md")):
        for name in (named | PAGES).get(path.stem, ()):
            row(name).pages.append(f"docs/{path.name}")
    return tuple(rows[name] for name in sorted(rows))


def _name_in(module: list[str], known: set[str]) -> str:
    """Return the module if it is named after a capability or one of its parts, otherwise its folder in `service`."""
    return module[-1] if module[-1] in known else module[2]


def sections() -> Iterator[tuple[str, str]]:
    """Iterate over modules and sections.

    A section that several capabilities share is divided into its parts; the rest belongs to the module with its name.
    """
    modules = config_modules()
    owners: dict[str, set[str]] = {}
    for module, keys in modules.items():
        for key in keys:
            owners.setdefault(key.path.split(":")[0], set()).add(capability_of(module))
    seen: set[str] = set()
    for module, keys in modules.items():
        for section in (_section(key.path.split(":"), owners) for key in keys):
            shared = len(owners.get(section, ())) > 1
            if section not in seen and (not shared or module.rpartition(".")[2] == section.lower()):
                seen.add(section)
                yield module, section


def _section(path: list[str], owners: dict[str, set[str]]) -> str:
    return path[0] if len(owners[path[0]]) == 1 or len(path) < 3 else ":".join(path[:2])


def routes() -> Iterator[tuple[str, str]]:
    """Iterate over modules and functions that return the routes of the service."""
    for path in sorted(SERVICE.rglob("*.py")):
        name = ".".join(("rowcall", *path.relative_to(ROOT).with_suffix("").parts))
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or not node.name.endswith("_routes") or node.returns is None:
                continue
            if "FixedRoute" in ast.unparse(node.returns):
                yield name, node.name


def metrics() -> Iterator[str]:
    """Iterate over the names of all metrics, as a service without requests and workers has them; not former names."""
    with TemporaryDirectory() as folder:
        families = (
            *read_counts(Path(folder)),
            *gauges(()),
            *Processes().families(()),
            *supervisor_families((), (), 0),
            *postgrest_families((), 0.0, 0, 0),
        )
    return (family.name for family in families if family.name not in FORMER_GAUGES.values())


def _of_metric(metric: str, rows: Collection[str]) -> str:
    """Return the capability whose name, in the singular or plural, has the most words in the name of the metric."""
    words = metric.split("_")
    parts = ["_".join(words[i:j]) for i, j in combinations(range(len(words) + 1), 2)]
    for part in sorted(parts, key=lambda part: -part.count("_")):
        for name in (part, f"{part}s", part.removesuffix("s")):
            capability = OF_METRICS.get(name) or capability_of(name)
            if capability in rows:
                return capability
    return "metrics"


def extras() -> Iterator[tuple[str, str]]:
    """Iterate over folders of `service` and `core`, and the extras of the package whose modules they import."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: set[tuple[str, str]] = set()
    for path in (*SERVICE.rglob("*.py"), *(ROOT / "core").rglob("*.py")):
        imported = set(re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
        for extra, requirements in project["optional-dependencies"].items():
            names = {re.split(r"[<>=\[]", item)[0].replace("-", "_") for item in requirements}
            if any(name.startswith(module) for name in names for module in imported if len(module) > 3):
                found.add((path.relative_to(ROOT).parts[1].removesuffix(".py"), extra))
    yield from sorted(found)


def markdown() -> str:
    """Return the table."""
    columns = [item.name for item in fields(Capability)]
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    for item in capabilities():
        cells = [f"`{item.name}`"]
        for column in columns[1:]:
            values = getattr(item, column)
            shown = [f"[{Path(value).stem}]({value})" if column == "pages" else f"`{value}`" for value in values]
            cells.append(", ".join(shown))
        lines.append(" | ".join(cells))
    return "".join(f"| {line} |\n" for line in lines)


def with_table(text: str) -> str:
    """Return the text of CONTRIBUTING.md with the present table."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{markdown()}\n{END}{rest.split(END)[1]}"
