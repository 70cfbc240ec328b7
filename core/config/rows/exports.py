"""Keys of exports: results in other formats, if a request asks for them."""

from rowcall.core.sections.keys import Key, flag, section, text, texts

ROWS: tuple[Key, ...] = (
    section("Exports", "Rows of JSON endpoints as CSV, JSON lines, spreadsheets or Parquet, if requests ask for them."),
    flag("Exports:Enabled", False, "Offer exports of all endpoints that return a set of rows."),
    texts(
        "Exports:Formats",
        ("csv", "jsonl", "excel"),
        "Formats that are offered: csv, jsonl, excel, parquet. The last needs the extra rowcall[parquet].",
    ),
    text(
        "Exports:Parameter",
        "format",
        "Parameter of the query string that names the format, besides the header Accept. Empty: none.",
    ),
)
