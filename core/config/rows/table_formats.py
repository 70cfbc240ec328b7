"""Keys of results as HTML tables and as spreadsheets (formats-1 to formats-6)."""

from rowcall.core.formats.table_formats import STYLE
from rowcall.core.sections.keys import Key, flag, section, text

_OPTIONS = "Service:TableFormatOptions:"

ROWS: tuple[Key, ...] = (
    section("Service:TableFormatOptions", "Results as HTML tables and as spreadsheets."),
    flag(_OPTIONS + "Enabled", False, "Let the annotation `table_format` choose another format than JSON."),
    flag(_OPTIONS + "HtmlEnabled", True, "Offer HTML tables."),
    text(_OPTIONS + "HtmlKey", "html", "Format name of HTML tables; case matters."),
    text(_OPTIONS + "HtmlHeader", STYLE, "HTML before the table. null or an empty text: none.", nullable=True),
    text(_OPTIONS + "HtmlFooter", None, "HTML after the table."),
    flag(_OPTIONS + "ExcelEnabled", True, "Offer spreadsheets."),
    text(_OPTIONS + "ExcelKey", "excel", "Format name of spreadsheets; case matters."),
    text(_OPTIONS + "ExcelSheetName", None, "Name of the worksheet. null is the name of the routine."),
    text(
        _OPTIONS + "ExcelDateTimeFormat",
        "yyyy-MM-dd HH:mm:ss",
        "Format code of cells with a date or a time stamp, as spreadsheets spell it. null is the default.",
        nullable=True,
    ),
    text(
        _OPTIONS + "ExcelNumericFormat",
        "General",
        "Format code of cells with a number, for example `#,##0.00`. null is the default.",
        nullable=True,
    ),
)
