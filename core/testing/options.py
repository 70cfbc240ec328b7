"""Options of `rowcall --test`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowcall.core.sections.declaration import (
    choice,
    flag,
    integer,
    interval,
    lenient,
    object_map,
    part,
    section,
    subsection,
    text,
    texts_or_sections,
)
from rowcall.core.sections.keys import JsonValue
from rowcall.core.sections.values import none_for_zero, words
from rowcall.core.text.interval import parse_interval


@dataclass(frozen=True, slots=True)
class PreparationStep:
    """A step before or after the tests. Exactly one of `sql`, `sql_file` and `command` is set.

    sql_file: path of a file with statements. command: for the shell. folder: in which the command runs; None: the
    working directory. connection: name of the one that runs the statements; None: the one that tests use.
    """

    name: str
    sql: str | None = None
    sql_file: str | None = None
    command: str | None = None
    folder: str | None = None
    connection: str | None = None


@section("TestRunner:Steps:<name>")
class TestStep:
    """The keys of a step in the configuration."""

    enabled = flag("Enabled", True, "Run the step.")
    sql = text("Sql", None, "Statements.")
    sql_file = text("SqlFile", None, "File of statements.")
    command = text("Command", None, "Command for the shell.")
    working_directory = text("WorkingDirectory", None, "Folder the command runs in.")
    connection_name = text("ConnectionName", None, "Connection that runs the statements.")


@section("TestRunner:ResponseTempTable", "Temporary table that receives a response.")
class ResponseTable:
    """The temporary tables that receive responses in tests."""

    name: str = text("Name", "_response", "Name of the table in a file with one request.")
    pattern: str = text(
        "MultiNamePattern", "_response_{n}", "Names of the tables in a file with several requests; {n} is the number."
    )
    debug: str | None = text(
        "DebugTable", None, "Permanent table that receives all responses too; it is created again in each run."
    )
    column_names = subsection("Columns", "Names of the columns of the table.")
    columns_status: str | None = text(
        "Columns:Status", "status", "Status, int. An empty name: no column.", nullable=True
    )
    columns_body: str | None = text("Columns:Body", "body", "Body, text. An empty name: no column.", nullable=True)
    columns_content_type: str | None = text(
        "Columns:ContentType", "content_type", "Content type, text. An empty name: no column.", nullable=True
    )
    columns_headers: str | None = text(
        "Columns:Headers", "headers", "Headers, jsonb. An empty name: no column.", nullable=True
    )
    columns_is_success: str | None = text(
        "Columns:IsSuccess",
        "is_success",
        "Whether the status is a success, boolean. An empty name: no column.",
        nullable=True,
    )
    columns: tuple[tuple[str, str, str], ...] = ()
    """For each column: the part of the response that it receives, its name, and its type."""


def _pattern(text: str) -> str:
    return text.strip().replace("\\", "/")


_TIMEOUT = "30s"


def _timeout(text: str) -> float:
    """Return the seconds of a timeout; 0: no limit. An invalid text gives the default, a negative duration no limit
    (testing-2, testing-3)."""
    if text.startswith("-"):
        return 0.0
    seconds = parse_interval(text)
    return parse_interval(_TIMEOUT) or 0.0 if seconds is None else seconds


def _tags(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in words(text))


def _percentage(number: int | None) -> int | None:
    if number is not None and number > 100:
        raise ValueError(f"{number} is more than 100 percent")
    return number


@section("TestRunner")
class TestSteps:
    """The keys for steps, with their values as the configuration has them; `TestOptions` has the resolved steps."""

    steps: JsonValue = object_map("Steps", {}, "Named steps for Setup and Teardown.", elements=TestStep)
    setup: JsonValue = texts_or_sections(
        "Setup", "Steps before the endpoints are discovered: names, or sections like those of Steps."
    )
    teardown: JsonValue = texts_or_sections("Teardown", "Steps at the end, also after failures.")


@section("TestRunner", "Tests written in SQL.")
class TestOptions:
    """Options of the test runner. timeout: seconds for one file with its setup; 0: no limit. parallel: number of files
    that run at the same time. steps: by name with case folded; None: the step is disabled."""

    __test__ = False

    pattern: str = text("FilePattern", "", "Pattern of test files. An empty text matches none.", convert=_pattern)
    filter: str = text(
        "Filter", "", "Only files whose path contains this text, or matches this pattern.", convert=str.strip
    )
    tags: frozenset[str] = text(
        "Tag", "", "Only files with one of these tags, separated by commas or spaces.", convert=_tags
    )
    unwanted_tags: frozenset[str] = text("ExcludeTag", "", "No file with one of these tags.", convert=_tags)
    connection: str = text("ConnectionName", "", "Connection that tests use as the main one; opened after Setup.")
    most_parallel: int | None = integer(
        "MaxParallelism", 0, "Files that run at the same time. 0 is one for each processor.", convert=none_for_zero
    )
    fail_fast: bool = flag("FailFast", False, "Start no further file after a failure.")
    timeout: float = lenient(interval("PerTestTimeout", _TIMEOUT, "Timeout of a file. 0: no limit."), _timeout)
    junit: str | None = text("JUnitOutput", None, "File for a JUnit report.")
    keep: bool = flag("Keep", False, "Leave out Teardown.")
    detailed: bool = flag("DetailedReport", False, "Show passed assertions, whole statements and notices.")
    allow_empty: bool = flag("AllowEmpty", False, "The run succeeds without any tests.")
    coverage: bool | None = flag(
        "Coverage", None, "Report which endpoints were called. null: if no files were filtered out."
    )
    threshold: int | None = integer(
        "CoverageThreshold", None, "Minimum percentage of endpoints that must be called.", convert=_percentage
    )
    channel: str = text("LoggerName", "rowcall.test", "Log channel of the runner.")
    tap: str | None = text("TapOutput", None, "File for a report in the Test Anything Protocol.")
    lcov: str | None = text(
        "LcovOutput",
        None,
        "File for endpoint coverage as an lcov tracefile. The endpoints are listed beside it (`….endpoints.txt`).",
    )
    cobertura: str | None = text(
        "CoberturaOutput", None, "File for endpoint coverage as Cobertura XML, with the same listing."
    )
    failed_first: str | None = text(
        "FailedFirst", None, "File with the names of failed test files; these run first in the next run."
    )
    isolation: str = choice(
        "Isolation",
        "None Transaction Template",
        "None",
        "Isolation of files. None: only by their own transactions; an open one is rolled back. Transaction: each "
        "file runs in a transaction that is rolled back. Template: each file has a copy of the database.",
        convert=str.lower,
    )
    table: ResponseTable = part(ResponseTable)
    step_keys = part(TestSteps)
    steps: Mapping[str, PreparationStep | None] = field(default_factory=dict)
    setup: tuple[PreparationStep, ...] = ()
    teardown: tuple[PreparationStep, ...] = ()
    parallel: int = 1
    warnings: tuple[str, ...] = ()
    """Messages about settings without effect."""

    @property
    def narrowed(self) -> bool:
        """Whether a filter or tags exclude files."""
        return bool(self.filter or self.tags or self.unwanted_tags)
