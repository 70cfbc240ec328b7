"""Outcomes as text, JUnit and TAP, and the exit code (testing-11 to testing-13)."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from rowcall.core.testing.documents import junit, tap
from rowcall.core.testing.outcome import Assertion, ExitCode, FileResult, Notice, Verdict, exit_code
from rowcall.core.testing.report import Style, file_lines, head, summary

PATH = "tests/water.test.sql"
WATER = FileResult(
    PATH,
    (Assertion("one", Verdict.PASS, PATH, 3), Assertion("two", Verdict.PASS, PATH, 4)),
    0.0412,
    (Notice("NOTICE", "hidden"),),
)  # fmt: skip
BEDS = FileResult(
    "tests/beds.test.sql",
    (Assertion("bed is listed", Verdict.FAIL, "tests/inc.sql", 12, "bed is listed", f"select {'x' * 200}\nfrom bed"),),
    0.017,
    (Notice("WARNING", "dry\nvery"),),
)
EMPTY = FileResult("tests/empty.test.sql", (), 0.003)
BROKEN = FileResult("tests/a&b.test.sql", (Assertion("x <1>\x01", Verdict.ERROR, "t\x02.sql", 1, "42601: no"),), 0.5)


@pytest.mark.parametrize(
    ("result", "detailed", "lines"),
    [
        (WATER, False, ["PASS  tests/water.test.sql  (2 assertions, 41ms)"]),
        (
            WATER,
            True,
            [
                "PASS  tests/water.test.sql  (2 assertions, 41ms)",
                "        ✓ one  [tests/water.test.sql:3]",
                "        ✓ two  [tests/water.test.sql:4]",
                "        notice: hidden",
            ],
        ),
        (
            BEDS,
            False,
            [
                "FAIL  tests/beds.test.sql  (17ms)",
                "        ✗ bed is listed  [tests/inc.sql:12]",
                f"        select {'x' * 113} …",
                "        warning: dry",
                "          very",
            ],
        ),
        (EMPTY, False, ["PASS  tests/empty.test.sql  (no assertions, 3ms)"]),
        (
            BROKEN,
            False,
            ["ERROR tests/a&b.test.sql  (500ms)", "        ✗ x <1>\\x01  [t\\x02.sql:1]", "          42601: no"],
        ),
    ],
)
def test_a_file_is_reported(result: FileResult, detailed: bool, lines: list[str]) -> None:
    assert list(file_lines(result, Style(detailed))) == lines


def test_control_characters_of_responses_and_notices_are_escaped() -> None:
    message = "body: \x1b[2J\x1b]0;title\x07\x9b1m\ta\u2028b\r\nbody: é"
    assertion = Assertion("GET /", Verdict.FAIL, PATH, 1, message, "select '\x1b[8m'")
    result = FileResult("\x1b.sql", (assertion,), 0, (Notice("NOTICE", "\x1b[31mred\nline"),))
    plain = list(file_lines(result, Style()))
    assert plain[0] == "FAIL  \\x1b.sql  (0ms)"
    assert plain[2:] == [
        "          body: \\x1b[2J\\x1b]0;title\\x07\\x9b1m\ta\\u2028b",
        "          body: é",
        "        select '\\x1b[8m'",
        "        notice: \\x1b[31mred",
        "          line",
    ]


def test_the_detailed_report_contains_whole_statements() -> None:
    assert list(file_lines(BEDS, Style(True)))[2:4] == [f"        select {'x' * 200}", "        from bed"]


def test_colours_are_used_in_a_terminal() -> None:
    assert next(file_lines(BEDS, Style(colour=True))).startswith("\x1b[31mFAIL \x1b[0m tests/beds")


def test_heading_and_summary_contain_the_counts() -> None:
    assert head(1) == "rowcall test — 1 file"
    assert summary([WATER, BEDS, EMPTY]) == "2 passed, 1 failed, 0 error(s)  —  3 assertions in 3 files"
    item = FileResult("a", WATER.assertions[:1])
    assert summary([item]) == "1 passed, 0 failed, 0 error(s)  —  1 assertion in 1 file"


@pytest.mark.parametrize(
    ("results", "code"),
    [([WATER, EMPTY], ExitCode.PASSED), ([WATER, BEDS], ExitCode.FAILED), ([BEDS, BROKEN], ExitCode.ERRORS)],
)
def test_errors_have_precedence_over_failures(results: list[FileResult], code: ExitCode) -> None:
    assert exit_code(results) is code


def test_junit_has_a_case_for_each_assertion() -> None:
    suite = ElementTree.fromstring(junit([WATER, BEDS, EMPTY, BROKEN], "shop", 1.5))
    assert suite.attrib == {
        "name": "shop",
        "tests": "5",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
        "time": "1.500",
    }
    item, _, failed, skipped, broken = suite
    assert item.attrib == {"name": "one", "classname": "tests/water.test.sql", "time": "0.021"}
    assert list(item) == []
    (failure, message) = failed
    assert (failure.tag, failure.attrib, failure.text) == ("failure", {"message": "bed is listed"}, "tests/inc.sql:12")
    assert (message.tag, message.text) == ("system-out", "warning: dry\nvery")
    assert (skipped.get("name"), skipped[0].tag) == ("(no assertions)", "skipped")
    assert broken.get("name") == "x <1>�"
    assert (broken[0].tag, broken[0].text) == ("error", "t�.sql:1")


def test_tap_has_a_point_for_each_assertion() -> None:
    assert tap([FileResult("a.sql", WATER.assertions[:1]), EMPTY, BROKEN]) == (
        "TAP version 14\n1..3\n"
        "ok 1 - a.sql: one\n"
        "ok 2 - tests/empty.test.sql # SKIP no assertions\n"
        "not ok 3 - tests/a&b.test.sql: x <1>\x01\n"
        "  ---\n  message: |\n    42601: no\n  severity: error\n  at: 't\x02.sql:1'\n  ...\n"
    )


def test_a_file_name_cannot_forge_lines_of_reports() -> None:
    name = "a\nok 2 - forged\x01'.sql"
    result = FileResult(name, (Assertion("x", Verdict.FAIL, name, 1),), 0.1)
    suite = ElementTree.fromstring(junit([result], "shop", 1.5))
    assert [case.get("classname") for case in suite] == ["a\nok 2 - forged\ufffd'.sql"]
    assert not [line for line in tap([result]).splitlines() if line.startswith("ok")]
