"""Read `Service:UploadOptions` (uploads-1, uploads-2), and `Downloads`."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.core.downloads.options import DownloadOptions, SendFile
from rowcall.core.outgoing.address import BadUrlError, read_address
from rowcall.core.outgoing.aws_signature import Credentials
from rowcall.core.uploads.options import (
    Common,
    Csv,
    Excel,
    Folder,
    HandlerOptions,
    JsonLines,
    LargeObjects,
    ObjectStore,
    Resumable,
    UploadOptions,
)
from rowcall.core.uploads.protected import ProtectedFolders
from rowcall.service.options.server.protected_folders import protected_folders
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.client")

_P = "Service:UploadOptions:"
_H = _P + "UploadHandlers:"


def upload_options(settings: Settings) -> UploadOptions:
    """Return the options of uploads, without handlers if uploads are disabled.

    Raises `StartupError` for a folder into which uploads must not be written.
    """
    uses_parameter = settings.flag(_P + "UseDefaultUploadMetadataParameter")
    uses_context_key = settings.flag(_P + "UseDefaultUploadMetadataContextKey")
    handlers = _handlers(settings) if settings.flag(_P + "Enabled") else {}
    default = settings.text(_P + "DefaultUploadHandler")
    if handlers and default not in handlers:
        log.warning(
            "%sDefaultUploadHandler: '%s' is none of the handlers %s; endpoints that name no handler accept no files",
            _P,
            default,
            ", ".join(handlers),
        )
    protected = protected_folders(settings)
    resumable = _resumable(settings)
    if handlers:
        _check_folders(handlers.values(), resumable, protected)
    return UploadOptions(
        log_event=settings.flag(_P + "LogUploadEvent"),
        log_parameters=settings.flag(_P + "LogUploadParameters"),
        default_handler=default,
        metadata_parameter=settings.text(_P + "DefaultUploadMetadataParameterName") if uses_parameter else None,
        context_key=settings.text(_P + "DefaultUploadMetadataContextKey") if uses_context_key else None,
        common=_common(settings),
        checks={
            name: tuple(shlex.split(text)) for name, text in settings.text_map(_P + "CheckCommands").items() if text
        },
        handlers=handlers,
        resumable=resumable,
        protected=protected,
    )


def download_options(settings: Settings, uploads: UploadOptions) -> DownloadOptions:
    """Return the options of downloads. Raises `StartupError` for a folder with files of the service itself."""
    names = settings.texts("Downloads:Folders") or tuple(
        handler.path for handler in uploads.handlers.values() if isinstance(handler, Folder)
    )
    folders = tuple(os.path.realpath(name) for name in names)
    for name, folder in zip(names, folders, strict=True):
        reason = uploads.protected.conflict(folder)
        if reason is not None:
            raise StartupError(f"Downloads:Folders: files of {name} must not be sent: {reason}")
    header = settings.choice_or_none("Downloads:SendFile")
    links = settings.seconds_or_none("Downloads:ObjectLinks")
    return DownloadOptions(
        folders=folders,
        active=settings.flag("Downloads:ActiveContent"),
        largest=settings.integer("Downloads:LargestContent"),
        send_file=None if header is None else SendFile(header),
        location=settings.text("Downloads:SendFileLocation"),
        link_seconds=None if links is None else max(1, round(links)),
    )


def _resumable(settings: Settings) -> Resumable:
    return Resumable(
        folder=settings.text_or_none(_P + "Resumable:Path") or None,
        max_size=settings.integer(_P + "Resumable:MaxSize"),
        seconds=settings.seconds(_P + "Resumable:ExpiresAfter"),
        most_unfinished=settings.integer_or_none(_P + "Resumable:MaxUnfinished"),
        most_bytes=settings.integer_or_none(_P + "Resumable:MaxUnfinishedSize"),
        most_of_client=settings.integer_or_none(_P + "Resumable:MaxUnfinishedPerClient"),
    )


def _check_folders(handlers: Iterable[HandlerOptions], resumable: Resumable, protected: ProtectedFolders) -> None:
    folders = [(f"{_H}FileSystemPath", handler.path) for handler in handlers if isinstance(handler, Folder)]
    if resumable.folder is not None:
        folders.append((f"{_P}Resumable:Path", resumable.folder))
    for key, folder in folders:
        reason = protected.conflict(os.path.realpath(folder))
        if reason is not None:
            raise StartupError(
                f"{key}: uploaded files must not be written into {folder}: {reason}; name another folder"
            )


@dataclass(frozen=True, slots=True)
class FolderCheck:
    """Callable that returns why uploads must not be written into a folder, or None."""

    protected: ProtectedFolders

    def __call__(self, folder: str) -> str | None:
        return self.protected.conflict(os.path.realpath(folder))


def _common(settings: Settings) -> Common:
    claims = settings.text_or_none(_H + "RowCommandUserClaimsKey")
    return Common(
        stop_after_first_success=settings.flag(_H + "StopAfterFirstSuccess"),
        included=settings.text_or_none(_H + "IncludedMimeTypePatterns"),
        excluded=settings.text_or_none(_H + "ExcludedMimeTypePatterns"),
        buffer_size=settings.integer(_H + "BufferSize"),
        text_bytes=settings.integer(_H + "TextTestBufferSize"),
        control_bytes=settings.integer(_H + "TextNonPrintableThreshold"),
        image_types=settings.text(_H + "AllowedImageTypes"),
        # An empty text disables the key; null means the default (uploads-2).
        claims_key="claims" if claims is None else claims,
    )


def _handlers(settings: Settings) -> dict[str, HandlerOptions]:
    """Return the enabled handlers by name; empty if only those for workbooks and JSON lines are enabled (uploads-1)."""
    plain = dict(_plain_handlers(settings))
    if not plain:
        return plain
    if settings.flag(_H + "ExcelUploadEnabled"):
        plain[settings.text(_H + "ExcelKey")] = _excel(settings)
    if settings.flag(_H + "JsonLinesEnabled"):
        plain[settings.text(_H + "JsonLinesKey")] = JsonLines(
            settings.flag(_H + "JsonLinesCheckFileStatus"), settings.text(_H + "JsonLinesRowCommand")
        )
    return plain


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
    if settings.flag(_H + "S3UploadEnabled"):
        yield settings.text(_H + "S3Key"), _object_store(settings)


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
        encoding=settings.choice(_H + "CsvUploadEncoding"),
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
        max_cells=settings.integer(_H + "ExcelMaxCells"),
        row_command=settings.text(_H + "ExcelUploadRowCommand"),
    )


def _object_store(settings: Settings) -> ObjectStore:
    """Return the options of the S3 handler. Raises `StartupError` for invalid values."""
    region = settings.text(_H + "S3Region")
    url = settings.text_or_none(_H + "S3Endpoint")
    path_style = settings.flag_or_none(_H + "S3ForcePathStyle")
    return ObjectStore(
        endpoint=f"https://s3.{region}.amazonaws.com" if not url else _store_url(url),
        region=region,
        bucket=settings.text_or_none(_H + "S3Bucket") or "",
        credentials=_credentials(settings),
        path_style=bool(url) if path_style is None else path_style,
        path=settings.text_or_none(_H + "S3Path") or "",
        unique_name=settings.flag(_H + "S3UseUniqueFileName"),
        part_size=settings.integer(_H + "S3PartSize"),
        timeout=settings.seconds(_H + "S3Timeout"),
        check_text=settings.flag(_H + "S3CheckText"),
        check_image=settings.flag(_H + "S3CheckImage"),
    )


def _store_url(text: str) -> str:
    try:
        address = read_address(text)
    except BadUrlError as error:
        raise StartupError(f"{_H}S3Endpoint: {error}") from None
    if address.target != "/" or address.userinfo is not None:
        raise StartupError(
            f"{_H}S3Endpoint: only a scheme, a host and a port may be given, such as https://s3.test:9000"
        )
    return f"{address.origin.scheme}://{address.origin.authority}"


def _credentials(settings: Settings) -> Credentials:
    key_id = settings.text_or_none(_H + "S3AccessKeyId") or os.environ.get("AWS_ACCESS_KEY_ID")
    secret = settings.text_or_none(_H + "S3SecretAccessKey") or os.environ.get("AWS_SECRET_ACCESS_KEY")
    token = settings.text_or_none(_H + "S3SessionToken") or os.environ.get("AWS_SESSION_TOKEN")
    if not key_id or not secret:
        raise StartupError(
            f"{_H}S3UploadEnabled needs S3AccessKeyId and S3SecretAccessKey beside it, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY in the environment"
        )
    return Credentials(key_id, secret, token or None)
