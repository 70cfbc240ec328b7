"""What runs again after a change (testing-14, testing-15), and what is reported of endpoints."""

from __future__ import annotations

import pytest

from rowcall.core.testing.watching import Change, Reaction, delta, reaction

EVERYTHING = Reaction(everything=True)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([Change("t/a.test.sql")], Reaction(files=frozenset({"t/a.test.sql"}))),
        ([Change("t/a.test.sql", gone=True)], Reaction()),
        ([Change("t/a.test.sql", gone=True), Change("t/b.test.sql")], Reaction(files=frozenset({"t/b.test.sql"}))),
        ([Change("t/fixture.sql")], EVERYTHING),
        ([Change("t/fixture.sql", gone=True), Change("t/a.test.sql")], EVERYTHING),
        ([Change("sql/beds.sql")], Reaction(rebuild=True, everything=True)),
        ([Change("sql/beds.sql", gone=True)], Reaction(rebuild=True, everything=True)),
        ([Change("sql/beds.skip.sql")], EVERYTHING),
    ],
)
def test_changed_files_select_the_tests_to_run(changes: list[Change], expected: Reaction) -> None:
    assert reaction(changes, "t/*.test.sql", "sql/*.sql", "*.skip.sql") == expected


def test_changed_sql_files_run_all_tests_if_endpoints_come_from_no_files() -> None:
    assert reaction([Change("sql/beds.sql")], "t/*.test.sql", None, "") == EVERYTHING


def test_added_and_removed_endpoints_are_reported() -> None:
    assert list(delta(["GET /a", "GET /b"], ["GET /a", "PUT /c", "PUT /d"])) == [
        "3 endpoint(s), before 2",
        "  + PUT /c",
        "  + PUT /d",
        "  - GET /b  (is its file or its comment as it should be?)",
    ]
