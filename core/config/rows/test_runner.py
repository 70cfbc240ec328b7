"""Keys of the runner of SQL tests."""

from rowcall.core.sections.keys import Key, choice, flag, integer, interval, object_map, section, steps, text

_P = "TestRunner:"
_TABLE = "TestRunner:ResponseTempTable:"
_STEP = "TestRunner:Steps:<name>:"


def _column(name: str, default: str, meaning: str) -> Key:
    return text(f"{_TABLE}Columns:{name}", default, f"{meaning}. An empty name: no column.", nullable=True)


ROWS: tuple[Key, ...] = (
    section("TestRunner", "Tests written in SQL."),
    text(_P + "FilePattern", "", "Pattern of test files. An empty text matches none."),
    text(_P + "Filter", "", "Only files whose path contains this text, or matches this pattern."),
    text(_P + "Tag", "", "Only files with one of these tags, separated by commas or spaces."),
    text(_P + "ExcludeTag", "", "No file with one of these tags."),
    text(_P + "ConnectionName", "", "Connection that tests use as the main one; opened after Setup."),
    integer(_P + "MaxParallelism", 0, "Files that run at the same time. 0 is one for each processor."),
    flag(_P + "FailFast", False, "Start no further file after a failure."),
    interval(_P + "PerTestTimeout", "30s", "Timeout of a file. 0: no limit."),
    text(_P + "JUnitOutput", None, "File for a JUnit report."),
    flag(_P + "Keep", False, "Leave out Teardown."),
    flag(_P + "DetailedReport", False, "Show passed assertions, whole statements and notices."),
    flag(_P + "AllowEmpty", False, "The run succeeds without any tests."),
    flag(_P + "Coverage", None, "Report which endpoints were called. null: if no files were filtered out."),
    integer(_P + "CoverageThreshold", None, "Minimum percentage of endpoints that must be called."),
    text(_P + "LoggerName", "rowcall.test", "Log channel of the runner."),
    text(_P + "TapOutput", None, "File for a report in the Test Anything Protocol."),
    text(
        _P + "LcovOutput",
        None,
        "File for endpoint coverage as an lcov tracefile. The endpoints are listed beside it (`….endpoints.txt`).",
    ),
    text(_P + "CoberturaOutput", None, "File for endpoint coverage as Cobertura XML, with the same listing."),
    text(_P + "FailedFirst", None, "File with the names of failed test files; these run first in the next run."),
    choice(
        _P + "Isolation",
        "None Transaction Template",
        "None",
        "Isolation of files. None: only by their own transactions; an open one is rolled back. Transaction: each file "
        "runs in a transaction that is rolled back. Template: each file has a copy of the database.",
    ),
    section(_P + "ResponseTempTable", "Temporary table that receives a response."),
    text(_TABLE + "Name", "_response", "Name of the table in a file with one request."),
    text(
        _TABLE + "MultiNamePattern",
        "_response_{n}",
        "Names of the tables in a file with several requests; {n} is the number.",
    ),
    text(
        _TABLE + "DebugTable", None, "Permanent table that receives all responses too; it is created again in each run."
    ),
    section(_TABLE + "Columns", "Names of the columns of the table."),
    _column("Status", "status", "Status, int"),
    _column("Body", "body", "Body, text"),
    _column("ContentType", "content_type", "Content type, text"),
    _column("Headers", "headers", "Headers, jsonb"),
    _column("IsSuccess", "is_success", "Whether the status is a success, boolean"),
    object_map(_P + "Steps", {}, "Named steps for Setup and Teardown."),
    flag(_STEP + "Enabled", True, "Run the step."),
    text(_STEP + "Sql", None, "Statements."),
    text(_STEP + "SqlFile", None, "File of statements."),
    text(_STEP + "Command", None, "Command for the shell."),
    text(_STEP + "WorkingDirectory", None, "Folder the command runs in."),
    text(_STEP + "ConnectionName", None, "Connection that runs the statements."),
    steps(_P + "Setup", "Steps before the endpoints are discovered: names, or sections like those of Steps."),
    steps(_P + "Teardown", "Steps at the end, also after failures."),
)
