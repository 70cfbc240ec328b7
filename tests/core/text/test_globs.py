"""The patterns for files (sql-files-3)."""

from __future__ import annotations

import pytest

from rowcall.core.text.globs import base_folder, has_wildcard, is_recursive, matches


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("sql/a.sql", "SQL/A.sql", True),
        ("sql/a.sql", "sql/a.sqlx", False),
        ("*.sql", "deep/er/a.sql", True),
        ("*.sql", ".sql", False),
        ("*.test.sql", "sql/x.test.sql", True),
        ("sql/*.sql", "sql/a/b.sql", True),
        ("sql/*.sql", "sql/.sql", True),
        ("sql/**/*.sql", "sql/a.sql", True),
        ("sql/**/*.sql", "sql/a/b/c.sql", True),
        ("sql/**/*.sql", "sql2/a.sql", False),
        ("sql/**/x/*.sql", "sql/a/x/b/c.sql", False),
        ("sql/**", "sql/a/b", True),
        ("sql/?.sql", "sql/a.sql", True),
        ("sql/?.sql", "sql/ab.sql", False),
        ("a.b", "axb", False),
        ("", "a", False),
        ("*", "", False),
    ],
)
def test_patterns_match_whole_paths_in_any_case(pattern: str, path: str, expected: bool) -> None:
    assert matches(path, pattern) is expected


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [("sql/*.sql", "sql"), ("./sql/**/x/*.sql", "./sql"), ("*.sql", "."), ("/srv/a?.sql", "/srv"), ("/*.sql", "/")],
)
def test_the_base_is_the_folder_before_the_first_wildcard(pattern: str, folder: str) -> None:
    assert base_folder(pattern) == folder


def test_only_two_stars_lead_into_folders() -> None:
    assert is_recursive("sql/**/*.sql")
    assert not is_recursive("sql/*/x.sql")
    assert has_wildcard("a?")
    assert not has_wildcard("a/b.sql")
