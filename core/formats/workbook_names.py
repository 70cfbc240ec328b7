"""Names of a downloaded spreadsheet: the file name, the worksheet name, and the Content-Disposition header."""

from __future__ import annotations

import re
from urllib.parse import quote

SHEET_LENGTH = 31
"""Maximum length of a worksheet name in UTF-16 code units, as spreadsheet programs count."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NOT_IN_SHEET = re.compile(r"[\\/?*\[\]:\x00-\x1f\x7f\ufffe\uffff]")
_NOT_IN_QUOTES = re.compile(r"[^ !#-\[\]-~]")


def file_name(text: str, routine: str) -> str:
    """Return `text`, or the routine's name if `text` is empty, with the extension `.xlsx` (formats-8). Control
    characters are removed; slashes become `_`. routine: name, may be quoted."""
    name = _CONTROL.sub("", text).strip() or routine.strip('"')
    name = re.sub(r"[/\\]", "_", name)
    return name if name.lower().endswith(".xlsx") else name + ".xlsx"


def sheet_name(text: str, routine: str) -> str:
    """Return `text`, or the routine's name if `text` is empty, as a valid worksheet name; `Sheet1` if both are empty.
    routine: name, may be quoted."""
    for candidate in (text, routine.strip('"')):
        name = _fit(_NOT_IN_SHEET.sub("_", candidate.strip()))
        if name:
            return name
    return "Sheet1"


def _fit(name: str) -> str:
    """Cut the name to 31 UTF-16 code units, and replace apostrophes at its ends and the reserved name `History`."""
    while len(name.encode("utf-16-le", "replace")) > 2 * SHEET_LENGTH:
        name = name[:-1]
    name = re.sub(r"^'|'$", "_", name)
    return "History_" if name.lower() == "history" else name


def content_disposition(name: str) -> str:
    """Return the Content-Disposition value for saving the body under this name (RFC 6266, 4 and appendix D)."""
    plain = _NOT_IN_QUOTES.sub("_", name)
    disposition = f'attachment; filename="{plain}"'
    return disposition if plain == name else f"{disposition}; filename*=UTF-8''{quote(name, safe='')}"
