"""Keys of exports: results in other formats, if a request asks for them."""

from rowcall.core.config.keys import Key, flag, section, text, texts

ROWS: tuple[Key, ...] = (
    section("Exports", "The rows of JSON endpoints as CSV, JSON lines or spreadsheets, if a request asks for them."),
    flag("Exports:Enabled", False, "Offer exports of all endpoints that return a set of rows."),
    texts("Exports:Formats", ("csv", "jsonl", "excel"), "Formats that are offered: csv, jsonl, excel."),
    text(
        "Exports:Parameter",
        "format",
        "Parameter of the query string that names the format, besides the header Accept. Empty: none.",
    ),
)
