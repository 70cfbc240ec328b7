"""Table formats as data: the configured formats, and checks of the `table_format` of endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.data.record import Record
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.endpoint.template import parse_template, placeholder_names
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.sections.declaration import flag, part, section, text
from rowcall.core.sections.values import or_empty

STYLE = (
    "<style>table{font-family:Calibri,Arial,sans-serif;font-size:11pt;border-collapse:collapse}"
    "th,td{border:1px solid #d4d4d4;padding:4px 8px}th{background-color:#f5f5f5;font-weight:600}</style>"
)
"""Style of HTML tables: that of a spreadsheet, so that a pasted table matches it."""


@section("Service:TableFormatOptions")
class HtmlTables(Record):
    """Options of HTML tables: HTML before and after the table."""

    header: str = text(
        "HtmlHeader", STYLE, "HTML before the table. null or an empty text: none.", nullable=True, convert=or_empty
    )
    footer: str = text("HtmlFooter", None, "HTML after the table.", convert=or_empty)


DATE_FORMAT = "yyyy-MM-dd HH:mm:ss"
NUMBER_FORMAT = "General"


def _date_format(text: str | None) -> str:
    return text or DATE_FORMAT


def _number_format(text: str | None) -> str:
    return text or NUMBER_FORMAT


@section("Service:TableFormatOptions")
class Workbooks(Record):
    """Options of spreadsheets. Formats are spreadsheet format codes."""

    sheet: str | None = text(
        "ExcelSheetName", None, "Name of the worksheet. null is the name of the routine.", empty=True
    )
    date_format: str = text(
        "ExcelDateTimeFormat",
        DATE_FORMAT,
        "Format code of cells with a date or a time stamp, as spreadsheets spell it. null is the default.",
        nullable=True,
        convert=_date_format,
    )
    number_format: str = text(
        "ExcelNumericFormat",
        NUMBER_FORMAT,
        "Format code of cells with a number, for example `#,##0.00`. null is the default.",
        nullable=True,
        convert=_number_format,
    )


@section("Service:TableFormatOptions", "Results as HTML tables and as spreadsheets.")
class TableFormatOptions:
    """Keys of `TableFormats`."""

    enabled: bool = flag("Enabled", False, "Let the annotation `table_format` choose another format than JSON.")
    html_enabled: bool = flag("HtmlEnabled", True, "Offer HTML tables.")
    html_key: str = text("HtmlKey", "html", "Format name of HTML tables; case matters.")
    html: HtmlTables = part(HtmlTables)
    excel_enabled: bool = flag("ExcelEnabled", True, "Offer spreadsheets.")
    excel_key: str = text("ExcelKey", "excel", "Format name of spreadsheets; case matters.")
    excel: Workbooks = part(Workbooks)


@dataclass(frozen=True, slots=True)
class TableFormats(Record):
    """The configured formats: pairs of the name in `table_format`, which is compared exactly, and the options.

    html, excel: None: the format is off.
    """

    html: tuple[str, HtmlTables] | None = None
    excel: tuple[str, Workbooks] | None = None
    parquet: str | None = None
    """Name of the format Parquet, for exports only; None: off."""

    @property
    def keys(self) -> tuple[str, ...]:
        keys = tuple(entry[0] for entry in (self.html, self.excel) if entry is not None)
        return keys if self.parquet is None else (*keys, self.parquet)


NO_FORMATS = TableFormats()
_TABLES = (RoutineKind.TABLE, RoutineKind.VIEW)

PARQUET = "application/vnd.apache.parquet"
HTML = "text/html; charset=utf-8"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def media_types(endpoint: Endpoint, formats: TableFormats) -> tuple[str, ...]:
    """Return the media types that an endpoint may send besides JSON, or instead of JSON if its format is fixed.

    Empty: JSON only.
    """
    table_format = endpoint.options.table_format
    if table_format is None or endpoint.table_shape is None:
        return ()
    fixed = has_fixed_format(endpoint)
    offered = ((formats.excel, EXCEL), (formats.html, HTML))
    return tuple(media for entry, media in offered if entry is not None and (not fixed or entry[0] == table_format))


def has_fixed_format(endpoint: Endpoint) -> bool:
    """Return whether `table_format` contains no placeholder, so that a request cannot choose the format."""
    template = parse_template(endpoint.options.table_format or "", placeholder_names(endpoint.parameters))
    return template.is_fixed


_OTHER_RESULTS = {ResultPath.VOID: "nothing", ResultPath.OBJECT: "one JSON object of several results"}


def table_diagnostics(endpoint: Endpoint, formats: TableFormats) -> Iterator[Diagnostic]:
    """Yield diagnostics about `table_format`, `excel_file_name` or `excel_sheet` without effect (formats-2)."""
    keys = formats.keys
    if not keys:
        return
    yield from _names_without_workbook(endpoint, formats)
    chosen = endpoint.options.table_format
    if chosen is None:
        return
    identity = endpoint.routine.identity
    names = placeholder_names(endpoint.parameters)
    template = parse_template(chosen, names)
    if template.unknown:
        yield Diagnostic(
            identity, None, f"table_format names no parameter of the routine: {', '.join(template.unknown)}"
        )
    elif template.is_fixed and chosen not in keys:
        yield Diagnostic(
            identity, None, f"table_format {chosen!r} is none of {', '.join(keys)}, so responses are JSON; name one"
        )
    # The comment of a table applies to all its operations; those without rows ignore `table_format`.
    if endpoint.shape.path is not ResultPath.ROWS and endpoint.routine.kind not in _TABLES:
        result = _OTHER_RESULTS.get(endpoint.shape.path, "a single value")
        yield Diagnostic(identity, None, f"table_format has no effect: the response is {result}, not rows")
    elif endpoint.options.publishing is not None:
        yield Diagnostic(identity, None, "table_format has no effect: publishes sends the response, as JSON")
    for name, pattern in _workbook_names(endpoint):
        unknown = parse_template(pattern, names).unknown
        if unknown:
            yield Diagnostic(identity, None, f"{name} names no parameter of the routine: {', '.join(unknown)}")


def _workbook_names(endpoint: Endpoint) -> Iterator[tuple[str, str]]:
    """Yield annotation and value of each spreadsheet name that the comment sets."""
    options = endpoint.options
    for name, pattern in (("excel_file_name", options.excel_file_name), ("excel_sheet", options.excel_sheet)):
        if pattern:
            yield name, pattern


def _names_without_workbook(endpoint: Endpoint, formats: TableFormats) -> Iterator[Diagnostic]:
    """Yield diagnostics about spreadsheet names of an endpoint that gives no spreadsheets."""
    chosen = endpoint.options.table_format
    key = None if formats.excel is None else formats.excel[0]
    if key is not None and chosen is not None and (chosen == key or not has_fixed_format(endpoint)):
        return
    why = (
        "Service:TableFormatOptions:ExcelEnabled is false"
        if key is None
        else f"the endpoint gives no spreadsheets; table_format = {key} makes it"
    )
    for name, _ in _workbook_names(endpoint):
        yield Diagnostic(endpoint.routine.identity, None, f"{name} has no effect: {why}")
