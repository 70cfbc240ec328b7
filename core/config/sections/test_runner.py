"""Keys of the runner of SQL tests."""

from __future__ import annotations

from rowcall.core.sections.declaration import (
    choice,
    flag,
    integer,
    interval,
    object_map,
    part,
    section,
    steps,
    subsection,
    text,
)


@section("TestRunner:ResponseTempTable", "Temporary table that receives a response.")
class ResponseTempTable:
    name = text("Name", "_response", "Name of the table in a file with one request.")
    multi_name_pattern = text(
        "MultiNamePattern", "_response_{n}", "Names of the tables in a file with several requests; {n} is the number."
    )
    debug_table = text(
        "DebugTable", None, "Permanent table that receives all responses too; it is created again in each run."
    )
    columns = subsection("Columns", "Names of the columns of the table.")
    columns_status = text("Columns:Status", "status", "Status, int. An empty name: no column.", nullable=True)
    columns_body = text("Columns:Body", "body", "Body, text. An empty name: no column.", nullable=True)
    columns_content_type = text(
        "Columns:ContentType", "content_type", "Content type, text. An empty name: no column.", nullable=True
    )
    columns_headers = text("Columns:Headers", "headers", "Headers, jsonb. An empty name: no column.", nullable=True)
    columns_is_success = text(
        "Columns:IsSuccess",
        "is_success",
        "Whether the status is a success, boolean. An empty name: no column.",
        nullable=True,
    )


@section("TestRunner:Steps:<name>")
class TestStep:
    enabled = flag("Enabled", True, "Run the step.")
    sql = text("Sql", None, "Statements.")
    sql_file = text("SqlFile", None, "File of statements.")
    command = text("Command", None, "Command for the shell.")
    working_directory = text("WorkingDirectory", None, "Folder the command runs in.")
    connection_name = text("ConnectionName", None, "Connection that runs the statements.")


@section("TestRunner", "Tests written in SQL.")
class TestRunner:
    file_pattern = text("FilePattern", "", "Pattern of test files. An empty text matches none.")
    filter = text("Filter", "", "Only files whose path contains this text, or matches this pattern.")
    tag = text("Tag", "", "Only files with one of these tags, separated by commas or spaces.")
    exclude_tag = text("ExcludeTag", "", "No file with one of these tags.")
    connection_name = text("ConnectionName", "", "Connection that tests use as the main one; opened after Setup.")
    max_parallelism = integer("MaxParallelism", 0, "Files that run at the same time. 0 is one for each processor.")
    fail_fast = flag("FailFast", False, "Start no further file after a failure.")
    per_test_timeout = interval("PerTestTimeout", "30s", "Timeout of a file. 0: no limit.")
    j_unit_output = text("JUnitOutput", None, "File for a JUnit report.")
    keep = flag("Keep", False, "Leave out Teardown.")
    detailed_report = flag("DetailedReport", False, "Show passed assertions, whole statements and notices.")
    allow_empty = flag("AllowEmpty", False, "The run succeeds without any tests.")
    coverage = flag("Coverage", None, "Report which endpoints were called. null: if no files were filtered out.")
    coverage_threshold = integer("CoverageThreshold", None, "Minimum percentage of endpoints that must be called.")
    logger_name = text("LoggerName", "rowcall.test", "Log channel of the runner.")
    tap_output = text("TapOutput", None, "File for a report in the Test Anything Protocol.")
    lcov_output = text(
        "LcovOutput",
        None,
        "File for endpoint coverage as an lcov tracefile. The endpoints are listed beside it (`….endpoints.txt`).",
    )
    cobertura_output = text(
        "CoberturaOutput", None, "File for endpoint coverage as Cobertura XML, with the same listing."
    )
    failed_first = text(
        "FailedFirst", None, "File with the names of failed test files; these run first in the next run."
    )
    isolation = choice(
        "Isolation",
        "None Transaction Template",
        "None",
        "Isolation of files. None: only by their own transactions; an open one is rolled back. Transaction: each "
        "file runs in a transaction that is rolled back. Template: each file has a copy of the database.",
    )
    table = part(ResponseTempTable)
    named_steps = object_map("Steps", {}, "Named steps for Setup and Teardown.", elements=TestStep)
    setup = steps("Setup", "Steps before the endpoints are discovered: names, or sections like those of Steps.")
    teardown = steps("Teardown", "Steps at the end, also after failures.")
