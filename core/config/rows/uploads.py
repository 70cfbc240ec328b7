"""Keys of uploads and their handlers (uploads-1 to uploads-4)."""

from rowcall.core.config.keys import Key, choice, flag, integer, interval, section, text, text_map
from rowcall.core.uploads.encodings import ENCODINGS, UTF8

_P = "Service:UploadOptions:"
_LONG = 2**63 - 1
_H = "Service:UploadOptions:UploadHandlers:"


def _handler(prefix: str, key: str, name: str, what: str) -> tuple[Key, ...]:
    return (
        flag(f"{_H}{prefix}Enabled", True, f"Offer the handler that {what}."),
        text(_H + key, name, "Name by which it is asked for."),
    )


def _checks(prefix: str) -> tuple[Key, ...]:
    return (
        flag(f"{_H}{prefix}CheckText", False, "Take files of text only."),
        flag(f"{_H}{prefix}CheckImage", False, "Take images only."),
    )


ROWS: tuple[Key, ...] = (
    section("Service:UploadOptions", "Uploaded files."),
    flag(_P + "Enabled", False, "Let endpoints take files."),
    flag(_P + "LogUploadEvent", True, "Log each upload."),
    flag(_P + "LogUploadParameters", False, "Log its parameters too."),
    text(_P + "DefaultUploadHandler", "large_object", "Handler of endpoints that name none."),
    flag(_P + "UseDefaultUploadMetadataParameter", False, "Give every upload's metadata to the parameter below."),
    text(_P + "DefaultUploadMetadataParameterName", "_upload_metadata", "That parameter."),
    flag(_P + "UseDefaultUploadMetadataContextKey", False, "Give it to the session variable below."),
    text(_P + "DefaultUploadMetadataContextKey", "request.upload_metadata", "That session variable."),
    text_map(
        _P + "CheckCommands",
        {},
        "Programs, with their arguments, that `check_command` may name. Each gets a file on its standard input and "
        "lets it pass by ending with 0.",
    ),
    section(_P + "Resumable", "Uploads in pieces (tus), to endpoints whose comment says `resumable`."),
    text(
        _P + "Resumable:Path",
        None,
        "Folder in which files wait for their last piece; several hosts need a common one. null: one of our own in the "
        "system's folder for temporary files.",
    ),
    integer(_P + "Resumable:MaxSize", 1_073_741_824, "Bytes of a file, at most.", maximum=_LONG),
    interval(
        _P + "Resumable:ExpiresAfter", "1 day", "An unfinished file for which nothing has come so long is removed."
    ),
    integer(
        _P + "Resumable:MaxUnfinished",
        1000,
        "Files that wait for their last piece, at most; the next one is answered 507. null: as many as there are.",
        nullable=True,
    ),
    integer(
        _P + "Resumable:MaxUnfinishedSize",
        17_179_869_184,
        "Bytes that these files may come to together; one whose length is not said yet counts as `MaxSize`. null: what "
        "the disk holds.",
        nullable=True,
        maximum=_LONG,
    ),
    integer(
        _P + "Resumable:MaxUnfinishedPerClient",
        100,
        "Those of one user, or of one address where nobody has signed in; the next one is answered 429. null: any.",
        nullable=True,
    ),
    section(_P + "UploadHandlers", "What becomes of files."),
    flag(_H + "StopAfterFirstSuccess", False, "Ask no further handler once one has taken the file."),
    text(_H + "IncludedMimeTypePatterns", None, "Patterns of types that are taken, separated by commas."),
    text(_H + "ExcludedMimeTypePatterns", None, "Patterns of types that are refused, separated by commas."),
    integer(_H + "BufferSize", 8192, "Bytes moved at a time."),
    integer(_H + "TextTestBufferSize", 4096, "Bytes looked at to tell text."),
    integer(_H + "TextNonPrintableThreshold", 5, "Unprintable bytes among them that make it no text."),
    text(_H + "AllowedImageTypes", "jpeg, png, gif, bmp, tiff, webp", "Kinds of images, separated by commas."),
    text(
        _H + "RowCommandUserClaimsKey",
        "claims",
        "Key of the metadata that tells row commands who the user is.",
        nullable=True,
    ),
    *_handler("LargeObject", "LargeObjectKey", "large_object", "keeps a file in the database"),
    *_checks("LargeObject"),
    *_handler("FileSystem", "FileSystemKey", "file_system", "keeps a file in a folder"),
    text(_H + "FileSystemPath", "/tmp/uploads", "That folder."),  # noqa: S108 - the documented default
    flag(_H + "FileSystemUseUniqueFileName", True, "Give each file a name of its own."),
    flag(_H + "FileSystemCreatePathIfNotExists", True, "Make the folder when it is missing."),
    *_checks("FileSystem"),
    *_handler("CsvUpload", "CsvUploadKey", "csv", "runs a command for each row of a CSV file"),
    flag(_H + "CsvUploadCheckFileStatus", True, "Make sure first that the file is text."),
    text(_H + "CsvUploadDelimiterChars", ",", "Characters between fields."),
    flag(_H + "CsvUploadHasFieldsEnclosedInQuotes", True, "Fields may stand in quotes."),
    flag(_H + "CsvUploadSetWhiteSpaceToNull", True, "A blank field is NULL."),
    choice(
        _H + "CsvUploadEncoding",
        " ".join(ENCODINGS),
        UTF8,
        "Encoding of CSV files. A file with a byte that is not valid in it is refused (400).",
    ),
    text(_H + "CsvUploadRowCommand", "call process_csv_row($1,$2,$3,$4)", "Command for each row."),
    *_handler("ExcelUpload", "ExcelKey", "excel", "runs a command for each row of a spreadsheet"),
    text(_H + "ExcelSheetName", None, "Sheet that is read. null is the first."),
    flag(_H + "ExcelAllSheets", False, "Read all sheets."),
    text(_H + "ExcelTimeFormat", "HH:mm:ss", "How a time is written."),
    text(_H + "ExcelDateFormat", "yyyy-MM-dd", "How a date is written."),
    text(_H + "ExcelDateTimeFormat", "yyyy-MM-dd HH:mm:ss", "How a date with a time is written."),
    flag(_H + "ExcelRowDataAsJson", False, "Give a row as JSON by cell address, rather than as an array of texts."),
    integer(
        _H + "ExcelMaxCells",
        10_000_000,
        "Cells of a workbook in the sheets that are read, counting the empty ones of each row up to the sheet's last "
        "column. A workbook with more is refused (413).",
    ),
    text(_H + "ExcelUploadRowCommand", "call process_excel_row($1,$2,$3,$4)", "Command for each row."),
    flag(_H + "S3UploadEnabled", False, "Offer the handler that keeps a file in a bucket of S3, or of what speaks it."),
    text(_H + "S3Key", "s3", "Name by which it is asked for."),
    text(_H + "S3Endpoint", None, "URL of the store, without a path. null is Amazon's, of the region."),
    text(_H + "S3Region", "us-east-1", "Region, which requests are signed for."),
    text(_H + "S3Bucket", None, "Bucket of endpoints that name none."),
    text(_H + "S3Path", None, "Stands in front of the names of objects, with a / between."),
    text(_H + "S3AccessKeyId", None, "Whose requests they are. null takes AWS_ACCESS_KEY_ID of the environment."),
    text(_H + "S3SecretAccessKey", None, "null takes AWS_SECRET_ACCESS_KEY of the environment.", secret=True),
    text(_H + "S3SessionToken", None, "null takes AWS_SESSION_TOKEN of the environment.", secret=True),
    flag(
        _H + "S3ForcePathStyle",
        None,
        "The bucket stands in the path of URLs, and not in the name of the host. null: where S3Endpoint is given.",
    ),
    integer(
        _H + "S3PartSize",
        8_388_608,
        "Bytes that are sent at a time; each upload holds up to twice as many. 5 MiB at least, and a file has 10,000 "
        "parts at most.",
        maximum=_LONG,
    ),
    interval(_H + "S3Timeout", "1 minute", "Time for each request to the store."),
    flag(_H + "S3UseUniqueFileName", True, "Give each object a name of its own."),
    *_checks("S3"),
)
