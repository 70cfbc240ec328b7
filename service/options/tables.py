"""Read `Service:TableFormatOptions` and `Exports` (formats-1 to formats-6)."""

from __future__ import annotations

from importlib.util import find_spec

from rowcall.core.config import Settings
from rowcall.core.formats.exports import ExportOptions
from rowcall.core.formats.table_formats import TableFormatOptions, TableFormats
from rowcall.service.startup_error import StartupError


def table_formats(settings: Settings) -> TableFormats:
    """Return the enabled table formats. Raises `StartupError` if two have the same key."""
    options = settings.read_enabled(TableFormatOptions)
    if options is None:
        return TableFormats()
    formats = TableFormats(
        html=(options.html_key, options.html) if options.html_enabled else None,
        excel=(options.excel_key, options.excel) if options.excel_enabled else None,
    )
    if formats.html is not None and formats.excel is not None and options.html_key == options.excel_key:
        raise StartupError(
            f"Service:TableFormatOptions:HtmlKey and ExcelKey are both {options.html_key!r}: one of them needs another "
            "key"
        )
    return formats


def export_options(settings: Settings) -> ExportOptions | None:
    """Return the options of exports; None: they are off. Raises `StartupError` if a format is not installed."""
    options = settings.read_enabled(ExportOptions)
    if options is not None and "parquet" in options.formats and find_spec("pyarrow") is None:
        raise StartupError("Exports:Formats: parquet needs pyarrow: pip install 'rowcall[parquet]'")
    return options
