"""Keys of uploads and their handlers (uploads-1 to uploads-4)."""

from rowcall.core.sections.keys import Key, choice, flag, integer, interval, section, text, text_map
from rowcall.core.uploads.encodings import ENCODINGS, UTF8

_P = "Service:UploadOptions:"
_LONG = 2**63 - 1
_H = "Service:UploadOptions:UploadHandlers:"


def _handler(prefix: str, key: str, name: str, what: str) -> tuple[Key, ...]:
    return (
        flag(f"{_H}{prefix}Enabled", True, f"Offer the handler that {what}."),
        text(_H + key, name, "Name of the handler in annotations."),
    )


def _checks(prefix: str) -> tuple[Key, ...]:
    return (
        flag(f"{_H}{prefix}CheckText", False, "Accept text files only."),
        flag(f"{_H}{prefix}CheckImage", False, "Accept images only."),
    )


ROWS: tuple[Key, ...] = (
    section("Service:UploadOptions", "Uploaded files."),
    flag(_P + "Enabled", False, "Enable uploads."),
    flag(_P + "LogUploadEvent", True, "Log each upload."),
    flag(_P + "LogUploadParameters", False, "Log its parameters too."),
    text(_P + "DefaultUploadHandler", "large_object", "Handler of endpoints that name none."),
    flag(
        _P + "UseDefaultUploadMetadataParameter",
        False,
        "Pass the metadata of every upload to the parameter DefaultUploadMetadataParameterName.",
    ),
    text(_P + "DefaultUploadMetadataParameterName", "_upload_metadata", "Name of the metadata parameter."),
    flag(
        _P + "UseDefaultUploadMetadataContextKey",
        False,
        "Pass the metadata to the session variable DefaultUploadMetadataContextKey.",
    ),
    text(
        _P + "DefaultUploadMetadataContextKey", "request.upload_metadata", "Name of the session variable for metadata."
    ),
    text_map(
        _P + "CheckCommands",
        {},
        "Programs, with their arguments, that `check_command` may name. A program reads a file on standard input and "
        "accepts it with exit code 0.",
    ),
    section(_P + "Resumable", "Resumable uploads (tus), to endpoints with the annotation `resumable`."),
    text(
        _P + "Resumable:Path",
        None,
        "Folder of unfinished files; several hosts need a common one. null: a folder of the service in the system's "
        "temporary folder.",
    ),
    integer(_P + "Resumable:MaxSize", 1_073_741_824, "Maximum size of a file in bytes.", minimum=1, maximum=_LONG),
    interval(
        _P + "Resumable:ExpiresAfter", "1 day", "Time without new data after which an unfinished file is removed."
    ),
    integer(
        _P + "Resumable:MaxUnfinished",
        1000,
        "Maximum number of unfinished files; further ones get 507. null: no limit.",
        nullable=True,
        minimum=1,
    ),
    integer(
        _P + "Resumable:MaxUnfinishedSize",
        17_179_869_184,
        "Maximum size of all unfinished files together in bytes; a file of unknown length counts as `MaxSize`. null: "
        "no limit.",
        nullable=True,
        minimum=1,
        maximum=_LONG,
    ),
    integer(
        _P + "Resumable:MaxUnfinishedPerClient",
        100,
        "Maximum number of unfinished files of one user, or of one address for anonymous callers; further ones get "
        "429. null: no limit.",
        nullable=True,
        minimum=1,
    ),
    section(_P + "UploadHandlers", "Upload handlers, which store or process files."),
    flag(_H + "StopAfterFirstSuccess", False, "Call no further handler after one has accepted the file."),
    text(_H + "IncludedMimeTypePatterns", None, "Patterns of accepted media types, separated by commas."),
    text(_H + "ExcludedMimeTypePatterns", None, "Patterns of refused media types, separated by commas."),
    integer(_H + "BufferSize", 8192, "Size of the buffer in bytes.", minimum=1),
    integer(_H + "TextTestBufferSize", 4096, "Bytes that are inspected to detect text.", minimum=1),
    integer(_H + "TextNonPrintableThreshold", 5, "Number of unprintable bytes from which a file is not text."),
    text(_H + "AllowedImageTypes", "jpeg, png, gif, bmp, tiff, webp", "Accepted image formats, separated by commas."),
    text(
        _H + "RowCommandUserClaimsKey",
        "claims",
        "Key of the metadata that contains the claims of the user, for row commands.",
        nullable=True,
    ),
    *_handler("LargeObject", "LargeObjectKey", "large_object", "stores a file in the database"),
    *_checks("LargeObject"),
    *_handler("FileSystem", "FileSystemKey", "file_system", "stores a file in a folder"),
    text(_H + "FileSystemPath", "/tmp/uploads", "Folder of stored files."),  # noqa: S108 - the documented default
    flag(_H + "FileSystemUseUniqueFileName", True, "Give each file a unique name."),
    flag(_H + "FileSystemCreatePathIfNotExists", True, "Create the folder if it is missing."),
    *_checks("FileSystem"),
    *_handler("CsvUpload", "CsvUploadKey", "csv", "runs a command for each row of a CSV file"),
    flag(_H + "CsvUploadCheckFileStatus", True, "Check first that the file is text."),
    text(_H + "CsvUploadDelimiterChars", ",", "Characters between fields."),
    flag(_H + "CsvUploadHasFieldsEnclosedInQuotes", True, "Fields may be quoted."),
    flag(_H + "CsvUploadSetWhiteSpaceToNull", True, "A blank field is NULL."),
    choice(
        _H + "CsvUploadEncoding",
        " ".join(ENCODINGS),
        UTF8,
        "Encoding of CSV files. A file with a byte that is not valid in it is refused (400).",
    ),
    text(_H + "CsvUploadRowCommand", "call process_csv_row($1,$2,$3,$4)", "Command for each row."),
    *_handler("ExcelUpload", "ExcelKey", "excel", "runs a command for each row of a spreadsheet"),
    text(_H + "ExcelSheetName", None, "Sheet that is read. null: the first."),
    flag(_H + "ExcelAllSheets", False, "Read all sheets."),
    text(_H + "ExcelTimeFormat", "HH:mm:ss", "Format of times."),
    text(_H + "ExcelDateFormat", "yyyy-MM-dd", "Format of dates."),
    text(_H + "ExcelDateTimeFormat", "yyyy-MM-dd HH:mm:ss", "Format of dates with times."),
    flag(_H + "ExcelRowDataAsJson", False, "Pass a row as JSON by cell address, rather than as an array of texts."),
    integer(
        _H + "ExcelMaxCells",
        10_000_000,
        "Maximum number of cells in the sheets that are read, including empty ones of each row up to the sheet's last "
        "column. A larger workbook is refused (413).",
        minimum=1,
    ),
    text(_H + "ExcelUploadRowCommand", "call process_excel_row($1,$2,$3,$4)", "Command for each row."),
    *_handler("JsonLines", "JsonLinesKey", "jsonl", "runs a command for each line of a file of JSON lines"),
    flag(_H + "JsonLinesCheckFileStatus", True, "Check first that the file is text."),
    text(_H + "JsonLinesRowCommand", "call process_jsonl_row($1,$2,$3,$4)", "Command for each line."),
    flag(
        _H + "S3UploadEnabled",
        False,
        "Offer the handler that stores a file in a bucket of S3 or of a compatible store.",
    ),
    text(_H + "S3Key", "s3", "Name of the handler in annotations."),
    text(_H + "S3Endpoint", None, "URL of the store, without a path. null: that of Amazon for the region."),
    text(_H + "S3Region", "us-east-1", "Region for which requests are signed."),
    text(_H + "S3Bucket", None, "Bucket of endpoints that name none."),
    text(_H + "S3Path", None, "Prefix of object names, followed by a /."),
    text(_H + "S3AccessKeyId", None, "Access key id. null: AWS_ACCESS_KEY_ID of the environment."),
    text(
        _H + "S3SecretAccessKey",
        None,
        "Secret access key. null: AWS_SECRET_ACCESS_KEY of the environment.",
        secret=True,
    ),
    text(_H + "S3SessionToken", None, "Session token. null: AWS_SESSION_TOKEN of the environment.", secret=True),
    flag(
        _H + "S3ForcePathStyle",
        None,
        "Put the bucket into the path of URLs instead of the host name. null: true if S3Endpoint is set.",
    ),
    integer(
        _H + "S3PartSize",
        8_388_608,
        "Size of a part in bytes, at least 5 MiB; each upload holds up to two parts in memory. A file has at most "
        "10,000 parts.",
        minimum=5_242_880,
        maximum=_LONG,
    ),
    interval(_H + "S3Timeout", "1 minute", "Timeout of each request to the store."),
    flag(_H + "S3UseUniqueFileName", True, "Give each object a unique name."),
    *_checks("S3"),
)
