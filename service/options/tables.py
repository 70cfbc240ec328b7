"""Read `Service:TableFormatOptions`: the enabled table formats and their layout (formats-1 to formats-6)."""

from __future__ import annotations

from importlib.util import find_spec

from rowcall.core.config import Settings
from rowcall.core.formats.exports import FORMATS, ExportOptions
from rowcall.core.formats.table_formats import HtmlTables, TableFormats, Workbooks
from rowcall.service.startup_error import StartupError


def table_formats(settings: Settings) -> TableFormats:
    section = "Service:TableFormatOptions:"
    if not settings.flag(section + "Enabled"):
        return TableFormats()
    default = Workbooks()
    html = HtmlTables(
        header=settings.text_or_none(section + "HtmlHeader") or "",
        footer=settings.text_or_none(section + "HtmlFooter") or "",
    )
    excel = Workbooks(
        sheet=settings.text_or_none(section + "ExcelSheetName"),
        date_format=settings.text_or_none(section + "ExcelDateTimeFormat") or default.date_format,
        number_format=settings.text_or_none(section + "ExcelNumericFormat") or default.number_format,
    )
    formats = TableFormats(
        html=(settings.text(section + "HtmlKey"), html) if settings.flag(section + "HtmlEnabled") else None,
        excel=(settings.text(section + "ExcelKey"), excel) if settings.flag(section + "ExcelEnabled") else None,
    )
    if formats.html is not None and formats.excel is not None and formats.html[0] == formats.excel[0]:
        raise StartupError(f"{section}HtmlKey and ExcelKey are both {formats.html[0]!r}: one of them needs another key")
    return formats


def export_options(settings: Settings) -> ExportOptions | None:
    """Return the options of exports; None: they are off. Raises `StartupError` for an unknown format."""
    if not settings.flag("Exports:Enabled"):
        return None
    formats = tuple(name.lower() for name in settings.texts("Exports:Formats") or ())
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise StartupError(f"Exports:Formats: {unknown[0]!r} is none of {', '.join(FORMATS)}")
    if "parquet" in formats and find_spec("pyarrow") is None:
        raise StartupError("Exports:Formats: parquet needs pyarrow: pip install 'rowcall[parquet]'")
    return ExportOptions(formats, settings.text_or_none("Exports:Parameter") or "")
