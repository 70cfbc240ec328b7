"""Findings and their severity, without a database (`rowcall --audit`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rowcall.core.building.access import access_of
from rowcall.core.endpoint.capabilities import Impersonation
from rowcall.core.operations.audit import (
    DatabaseFacts,
    Definer,
    Role,
    TableFacts,
    database_findings,
    endpoint_findings,
    may_write,
)
from rowcall.service.options.audit import weakness
from tests.core.routines import column, endpoint, parameter

ROLE = Role("clerk")
PLAIN = Definer(1, "f()", "boss", False, None, False)


def test_oids_of_other_databases_name_other_routines() -> None:
    named = endpoint(oid=1)
    facts = DatabaseFacts(ROLE, (PLAIN,), source="Reports")
    (finding,) = database_findings(facts, [named])
    assert (finding.severity.value, finding.about) == ("medium", "f() (connection Reports)")
    (finding,) = database_findings(facts, [replace(named, catalogue_connection="Reports")])
    assert finding.severity.value == "high"


def found(constraints: DatabaseFacts) -> list[tuple[str, str]]:
    return [(item.severity.value, item.code) for item in database_findings(constraints, ())]


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (ROLE, []),
        (Role("boss", superuser=True, bypasses=True, memberships=("pg_read_all_data",)), [("high", "superuser")]),
        (Role("r", bypasses=True), [("high", "role-attribute")]),
        (Role("r", creates_roles=True), [("medium", "role-attribute")]),
        (Role("r", owns_database=True), [("medium", "owns-database")]),
    ],
)
def test_excessive_privileges_of_the_role_are_found(role: Role, expected: list[tuple[str, str]]) -> None:
    assert found(DatabaseFacts(role)) == expected


@pytest.mark.parametrize(
    ("path", "parsed", "expected"),
    [
        (None, False, [("medium", "definer-search-path")]),
        (None, True, []),
        ("app, pg_temp", False, []),
        ('app, "public"', False, [("medium", "definer-open-schema")]),
    ],
)
def test_security_definer_functions_with_unsafe_search_paths_are_found(
    path: str | None, parsed: bool, expected: list[tuple[str, str]]
) -> None:
    constraints = DatabaseFacts(ROLE, (Definer(1, "f()", "boss", False, path, parsed),), public_schemas=("public",))
    assert found(constraints) == [("medium", "public-create"), *expected]


@pytest.mark.parametrize(("fresh", "expected"), [(None, [("low", "impersonation")]), (300.0, [])])
def test_impersonation_endpoints_are_found(fresh: float | None, expected: list[tuple[str, str]]) -> None:
    plain = endpoint()
    requested = replace(plain.options, login=True, impersonation=Impersonation.BEGINS, roles=("support",), fresh=fresh)
    result = endpoint_findings(
        [
            replace(
                plain,
                options=requested,
                access=access_of(requested, basic_everywhere=False, anonymous_database_role=False),
            )
        ]
    )
    assert [(item.severity.value, item.code) for item in result] == expected


def test_policies_without_effect_are_found() -> None:
    table = TableFacts(1, "t", False, True, False, True, frozenset({"select"}))
    assert found(DatabaseFacts(ROLE, tables=(table,))) == [("high", "policies-without-effect")]


@pytest.mark.parametrize(
    ("secret", "weak"),
    [
        ("a" * 64, True),
        ("my-secret-key-for-signing-tokens-0001", True),
        ("0123456789" * 4, True),
        ("nTx7yQ2vKp9wRb4sLd8fHg3jZc6mVa1eUo5iXr0tYqWk", False),
        ("abababababababababababababababab", True),
    ],
)
def test_weak_secrets_are_found_and_not_shown(secret: str, weak: bool) -> None:
    why = weakness(secret)
    assert (why is not None) is weak
    assert secret not in (why or "")


@pytest.mark.parametrize(
    ("columns", "named", "expected"),
    [
        (("user_id", "user_name"), "_password", ["login-without-hash"]),
        (("user_id", "Hash"), "_password", []),
        (("user_id", "user_name"), "_name", []),
    ],
)
def test_logins_that_cannot_return_a_hash_are_found(columns: tuple[str, ...], named: str, expected: list[str]) -> None:
    made = endpoint(
        parameter(named, 25), returns=2249, columns=tuple(column(name, 25) for name in columns), comment="login"
    )
    codes = [item.code for item in endpoint_findings([made])]
    assert [code for code in codes if code != "anonymous-write"] == expected


def test_an_invalidation_endpoint_does_not_count_as_writing() -> None:
    made = endpoint(parameter("_sku", 25), returns=25)
    posted = replace(made, method="POST")
    invalidating = replace(posted, options=replace(posted.options, invalidates="GET"))
    assert [may_write(item) for item in (posted, invalidating)] == [True, False]
