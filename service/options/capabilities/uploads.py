"""`Service:UploadOptions` → frozen options (reference 05, 5.1)."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator

from rowcall.core.config import Settings
from rowcall.core.uploads.options import (
    Common,
    Csv,
    Excel,
    Folder,
    HandlerOptions,
    LargeObjects,
    Resumable,
    UploadOptions,
)

log = logging.getLogger("rowcall.client")

_P = "Service:UploadOptions:"
_H = _P + "UploadHandlers:"


def upload_options(settings: Settings) -> UploadOptions:
    """Without handlers where uploads are switched off."""
    named = settings.flag(_P + "UseDefaultUploadMetadataParameter")
    kept = settings.flag(_P + "UseDefaultUploadMetadataContextKey")
    handlers = _handlers(settings) if settings.flag(_P + "Enabled") else {}
    default = settings.text(_P + "DefaultUploadHandler")
    if handlers and default not in handlers:
        log.warning(
            "%sDefaultUploadHandler: '%s' is none of the handlers %s; uploads that name no handler fail",
            _P,
            default,
            ", ".join(handlers),
        )
    return UploadOptions(
        log_event=settings.flag(_P + "LogUploadEvent"),
        log_parameters=settings.flag(_P + "LogUploadParameters"),
        default_handler=default,
        metadata_parameter=settings.text(_P + "DefaultUploadMetadataParameterName") if named else None,
        context_key=settings.text(_P + "DefaultUploadMetadataContextKey") if kept else None,
        common=_common(settings),
        checks={
            name: tuple(shlex.split(text)) for name, text in settings.text_map(_P + "CheckCommands").items() if text
        },
        handlers=handlers,
        resumable=Resumable(
            folder=settings.text_or_none(_P + "Resumable:Path") or None,
            max_size=settings.integer(_P + "Resumable:MaxSize", minimum=1),
            seconds=settings.seconds(_P + "Resumable:ExpiresAfter"),
        ),
    )


def _common(settings: Settings) -> Common:
    claims = settings.text_or_none(_H + "RowCommandUserClaimsKey")
    return Common(
        stop_after_first_success=settings.flag(_H + "StopAfterFirstSuccess"),
        included=settings.text_or_none(_H + "IncludedMimeTypePatterns"),
        excluded=settings.text_or_none(_H + "ExcludedMimeTypePatterns"),
        buffer_size=settings.integer(_H + "BufferSize", minimum=1),
        text_bytes=settings.integer(_H + "TextTestBufferSize", minimum=1),
        control_bytes=settings.integer(_H + "TextNonPrintableThreshold"),
        image_types=settings.text(_H + "AllowedImageTypes"),
        # An empty key switches it off, null is the default (reference 05, 5.1).
        claims_key="claims" if claims is None else claims,
    )


def _handlers(settings: Settings) -> dict[str, HandlerOptions]:
    """None at all where only the one for spreadsheets would be left (reference 05, 5.1)."""
    plain = dict(_plain_handlers(settings))
    if not plain or not settings.flag(_H + "ExcelUploadEnabled"):
        return plain
    return {**plain, settings.text(_H + "ExcelKey"): _excel(settings)}


def _plain_handlers(settings: Settings) -> Iterator[tuple[str, HandlerOptions]]:
    if settings.flag(_H + "LargeObjectEnabled"):
        yield (
            settings.text(_H + "LargeObjectKey"),
            LargeObjects(settings.flag(_H + "LargeObjectCheckText"), settings.flag(_H + "LargeObjectCheckImage")),
        )
    if settings.flag(_H + "FileSystemEnabled"):
        yield settings.text(_H + "FileSystemKey"), _folder(settings)
    if settings.flag(_H + "CsvUploadEnabled"):
        yield settings.text(_H + "CsvUploadKey"), _csv(settings)


def _folder(settings: Settings) -> Folder:
    return Folder(
        path=settings.text(_H + "FileSystemPath"),
        unique_name=settings.flag(_H + "FileSystemUseUniqueFileName"),
        create_path=settings.flag(_H + "FileSystemCreatePathIfNotExists"),
        check_text=settings.flag(_H + "FileSystemCheckText"),
        check_image=settings.flag(_H + "FileSystemCheckImage"),
    )


def _csv(settings: Settings) -> Csv:
    return Csv(
        check_format=settings.flag(_H + "CsvUploadCheckFileStatus"),
        delimiters=settings.text(_H + "CsvUploadDelimiterChars"),
        quotes=settings.flag(_H + "CsvUploadHasFieldsEnclosedInQuotes"),
        blank_is_null=settings.flag(_H + "CsvUploadSetWhiteSpaceToNull"),
        row_command=settings.text(_H + "CsvUploadRowCommand"),
    )


def _excel(settings: Settings) -> Excel:
    return Excel(
        sheet_name=settings.text_or_none(_H + "ExcelSheetName"),
        all_sheets=settings.flag(_H + "ExcelAllSheets"),
        time_format=settings.text(_H + "ExcelTimeFormat"),
        date_format=settings.text(_H + "ExcelDateFormat"),
        datetime_format=settings.text(_H + "ExcelDateTimeFormat"),
        row_is_json=settings.flag(_H + "ExcelRowDataAsJson"),
        row_command=settings.text(_H + "ExcelUploadRowCommand"),
    )
