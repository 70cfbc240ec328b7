"""Options of uploads and of each handler, from `Service:UploadOptions` (uploads-1, uploads-2)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import field

from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.data.record import Record
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.outgoing.address import BadUrlError, read_address
from rowcall.core.outgoing.aws_signature import Credentials
from rowcall.core.sections.declaration import choice, flag, integer, interval, part, section, text, text_map
from rowcall.core.sections.values import or_empty
from rowcall.core.uploads.encodings import ENCODINGS, UTF8
from rowcall.core.uploads.protected_folders import ProtectedFolders
from rowcall.core.uploads.row_command import check_numbers


def _claims_key(text: str | None) -> str:
    # An empty text disables the key; null means the default (uploads-2).
    return "claims" if text is None else text


def _store_url(text: str | None) -> str:
    """Return scheme, host and port of a URL as a URL; an empty text for None. Raises ValueError if the URL is invalid
    or has other parts."""
    if text is None:
        return ""
    try:
        address = read_address(text)
    except BadUrlError as error:
        raise ValueError(str(error)) from None
    if address.target != "/" or address.userinfo is not None:
        raise ValueError("only a scheme, a host and a port may be given, such as https://s3.test:9000")
    return f"{address.origin.scheme}://{address.origin.authority}"


def _commands(texts: Mapping[str, str | None]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(shlex.split(text)) for name, text in texts.items() if text}


@section("Service:UploadOptions:UploadHandlers")
class Common(Record):
    """Options that apply to every handler."""

    stop_after_first_success: bool = flag(
        "StopAfterFirstSuccess", False, "Call no further handler after one has accepted the file."
    )
    included: str | None = text(
        "IncludedMimeTypePatterns", None, "Patterns of accepted media types, separated by commas."
    )
    excluded: str | None = text(
        "ExcludedMimeTypePatterns", None, "Patterns of refused media types, separated by commas."
    )
    buffer_size: int = integer("BufferSize", 8192, "Size of the buffer in bytes.", minimum=1)
    text_bytes: int = integer("TextTestBufferSize", 4096, "Bytes that are inspected to detect text.", minimum=1)
    control_bytes: int = integer(
        "TextNonPrintableThreshold", 5, "Number of unprintable bytes from which a file is not text."
    )
    image_types: str = text(
        "AllowedImageTypes", "jpeg, png, gif, bmp, tiff, webp", "Accepted image formats, separated by commas."
    )
    claims_key: str = text(
        "RowCommandUserClaimsKey",
        "claims",
        "Key of the metadata that contains the claims of the user, for row commands.",
        nullable=True,
        empty=True,
        convert=_claims_key,
    )


@section("Service:UploadOptions:UploadHandlers", switch="LargeObjectEnabled")
class LargeObjects(Record):
    """Options of the handler `large_object`."""

    enabled: bool = flag("LargeObjectEnabled", True, "Offer the handler that stores a file in the database.")
    key: str = text("LargeObjectKey", "large_object", "Name of the handler in annotations.")
    check_text: bool = flag("LargeObjectCheckText", False, "Accept text files only.")
    check_image: bool = flag("LargeObjectCheckImage", False, "Accept images only.")


@section("Service:UploadOptions:UploadHandlers", switch="FileSystemEnabled")
class Folder(Record):
    """Options of the handler `file_system`."""

    enabled: bool = flag("FileSystemEnabled", True, "Offer the handler that stores a file in a folder.")
    key: str = text("FileSystemKey", "file_system", "Name of the handler in annotations.")
    path: str = text("FileSystemPath", "/tmp/uploads", "Folder of stored files.")  # noqa: S108 - the documented default
    unique_name: bool = flag("FileSystemUseUniqueFileName", True, "Give each file a unique name.")
    create_path: bool = flag("FileSystemCreatePathIfNotExists", True, "Create the folder if it is missing.")
    check_text: bool = flag("FileSystemCheckText", False, "Accept text files only.")
    check_image: bool = flag("FileSystemCheckImage", False, "Accept images only.")


@section("Service:UploadOptions:UploadHandlers", switch="CsvUploadEnabled")
class Csv(Record):
    """Options of the handler `csv`."""

    enabled: bool = flag("CsvUploadEnabled", True, "Offer the handler that runs a command for each row of a CSV file.")
    key: str = text("CsvUploadKey", "csv", "Name of the handler in annotations.")
    check_format: bool = flag("CsvUploadCheckFileStatus", True, "Check first that the file is text.")
    delimiters: str = text("CsvUploadDelimiterChars", ",", "Characters between fields.")
    quotes: bool = flag("CsvUploadHasFieldsEnclosedInQuotes", True, "Fields may be quoted.")
    blank_is_null: bool = flag("CsvUploadSetWhiteSpaceToNull", True, "A blank field is NULL.")
    encoding: str = choice(
        "CsvUploadEncoding",
        " ".join(ENCODINGS),
        UTF8,
        "Encoding of CSV files. A file with a byte that is not valid in it is refused (400).",
    )
    row_command: str = text(
        "CsvUploadRowCommand", "call process_csv_row($1,$2,$3,$4)", "Command for each row.", convert=check_numbers
    )


@section("Service:UploadOptions:UploadHandlers", switch="ExcelUploadEnabled")
class Excel(Record):
    """Options of the handler `excel`."""

    enabled: bool = flag(
        "ExcelUploadEnabled", True, "Offer the handler that runs a command for each row of a spreadsheet."
    )
    key: str = text("ExcelKey", "excel", "Name of the handler in annotations.")
    sheet_name: str | None = text("ExcelSheetName", None, "Sheet that is read. null: the first.", empty=True)
    all_sheets: bool = flag("ExcelAllSheets", False, "Read all sheets.")
    time_format: str = text("ExcelTimeFormat", "HH:mm:ss", "Format of times.")
    date_format: str = text("ExcelDateFormat", "yyyy-MM-dd", "Format of dates.")
    datetime_format: str = text("ExcelDateTimeFormat", "yyyy-MM-dd HH:mm:ss", "Format of dates with times.")
    row_is_json: bool = flag(
        "ExcelRowDataAsJson", False, "Pass a row as JSON by cell address, rather than as an array of texts."
    )
    max_cells: int = integer(
        "ExcelMaxCells",
        10_000_000,
        "Maximum number of cells in the sheets that are read, including empty ones of each row up to the sheet's "
        "last column. A larger workbook is refused (413).",
        minimum=1,
    )
    row_command: str = text(
        "ExcelUploadRowCommand", "call process_excel_row($1,$2,$3,$4)", "Command for each row.", convert=check_numbers
    )


@section("Service:UploadOptions:UploadHandlers", switch="JsonLinesEnabled")
class JsonLines(Record):
    """Options of the handler `jsonl`."""

    enabled: bool = flag(
        "JsonLinesEnabled", True, "Offer the handler that runs a command for each line of a file of JSON lines."
    )
    key: str = text("JsonLinesKey", "jsonl", "Name of the handler in annotations.")
    check_format: bool = flag("JsonLinesCheckFileStatus", True, "Check first that the file is text.")
    row_command: str = text(
        "JsonLinesRowCommand", "call process_jsonl_row($1,$2,$3,$4)", "Command for each line.", convert=check_numbers
    )


@section("Service:UploadOptions:Resumable", "Resumable uploads (tus), to endpoints with the annotation `resumable`.")
class Resumable(Record):
    """Options of resumable uploads."""

    folder: str | None = text(
        "Path",
        None,
        "Folder of unfinished files; several hosts need a common one. null: a folder of the service in the "
        "system's temporary folder.",
    )
    max_size: int = integer("MaxSize", 1_073_741_824, "Maximum size of a file in bytes.", minimum=1, maximum=2**63 - 1)
    seconds: float = interval(
        "ExpiresAfter", "1 day", "Time without new data after which an unfinished file is removed."
    )
    most_unfinished: int | None = integer(
        "MaxUnfinished",
        1000,
        "Maximum number of unfinished files; further ones get 507. null: no limit.",
        nullable=True,
        minimum=1,
    )
    most_bytes: int | None = integer(
        "MaxUnfinishedSize",
        17_179_869_184,
        "Maximum size of all unfinished files together in bytes; a file of unknown length counts as `MaxSize`. "
        "null: no limit.",
        nullable=True,
        minimum=1,
        maximum=2**63 - 1,
    )
    most_of_client: int | None = integer(
        "MaxUnfinishedPerClient",
        100,
        "Maximum number of unfinished files of one user, or of one address for anonymous callers; further ones "
        "get 429. null: no limit.",
        nullable=True,
        minimum=1,
    )


@section("Service:UploadOptions:UploadHandlers")
class StoreCredentials:
    key_id: str | None = text("S3AccessKeyId", None, "Access key id. null: AWS_ACCESS_KEY_ID of the environment.")
    secret: str | None = text(
        "S3SecretAccessKey", None, "Secret access key. null: AWS_SECRET_ACCESS_KEY of the environment.", secret=True
    )
    token: str | None = text(
        "S3SessionToken", None, "Session token. null: AWS_SESSION_TOKEN of the environment.", secret=True
    )


@section("Service:UploadOptions:UploadHandlers", switch="S3UploadEnabled")
class ObjectStore(Record):
    """Options of the handler `s3`."""

    credentials: Credentials

    enabled: bool = flag(
        "S3UploadEnabled", False, "Offer the handler that stores a file in a bucket of S3 or of a compatible store."
    )
    key: str = text("S3Key", "s3", "Name of the handler in annotations.")
    endpoint: str = text(
        "S3Endpoint", None, "URL of the store, without a path. null: that of Amazon for the region.", convert=_store_url
    )
    region: str = text("S3Region", "us-east-1", "Region for which requests are signed.")
    bucket: str = text("S3Bucket", None, "Bucket of endpoints that name none.", convert=or_empty)
    path: str = text("S3Path", None, "Prefix of object names, followed by a /.", convert=or_empty)
    credential_keys = part(StoreCredentials)
    path_style: bool | None = flag(
        "S3ForcePathStyle",
        None,
        "Put the bucket into the path of URLs instead of the host name. null: true if S3Endpoint is set.",
    )
    part_size: int = integer(
        "S3PartSize",
        8_388_608,
        "Size of a part in bytes, at least 5 MiB; each upload holds up to two parts in memory. A file has at "
        "most 10,000 parts.",
        minimum=5_242_880,
        maximum=2**63 - 1,
    )
    timeout: float = interval("S3Timeout", "1 minute", "Timeout of each request to the store.")
    unique_name: bool = flag("S3UseUniqueFileName", True, "Give each object a unique name.")
    check_text: bool = flag("S3CheckText", False, "Accept text files only.")
    check_image: bool = flag("S3CheckImage", False, "Accept images only.")


HandlerOptions = LargeObjects | Folder | Csv | Excel | JsonLines | ObjectStore


@section("Service:UploadOptions:UploadHandlers", "Upload handlers, which store or process files.")
class UploadHandlers:
    """The keys of all handlers."""

    common = part(Common)
    large_objects = part(LargeObjects)
    folder = part(Folder)
    csv = part(Csv)
    excel = part(Excel)
    json_lines = part(JsonLines)
    object_store = part(ObjectStore)


@section("Service:UploadOptions", "Uploaded files.")
class UploadOptions(Record):
    """Options of uploads."""

    enabled: bool = flag("Enabled", False, "Enable uploads.")
    log_event: bool = flag("LogUploadEvent", True, "Log each upload.")
    log_parameters: bool = flag("LogUploadParameters", False, "Log its parameters too.")
    default_handler: str = text("DefaultUploadHandler", "large_object", "Handler of endpoints that name none.")
    uses_parameter: bool = flag(
        "UseDefaultUploadMetadataParameter",
        False,
        "Pass the metadata of every upload to the parameter DefaultUploadMetadataParameterName.",
    )
    parameter_name: str = text(
        "DefaultUploadMetadataParameterName", "_upload_metadata", "Name of the metadata parameter."
    )
    uses_context_key: bool = flag(
        "UseDefaultUploadMetadataContextKey",
        False,
        "Pass the metadata to the session variable DefaultUploadMetadataContextKey.",
    )
    context_key_name: str = text(
        "DefaultUploadMetadataContextKey", "request.upload_metadata", "Name of the session variable for metadata."
    )
    checks: Mapping[str, tuple[str, ...]] = text_map(
        "CheckCommands",
        {},
        "Programs, with their arguments, that `check_command` may name. A program reads a file on standard input "
        "and accepts it with exit code 0.",
        convert=_commands,
    )
    resumable: Resumable = part(Resumable)
    handler_keys = part(UploadHandlers)
    common: Common = Common()
    handlers: Mapping[str, HandlerOptions] = field(default_factory=dict)
    """Handlers by key, in the order of the configuration. Empty: no endpoint accepts files."""
    protected: ProtectedFolders = field(default_factory=ProtectedFolders)
    """Folders into which uploaded files are never written."""

    @property
    def metadata_parameter(self) -> str | None:
        """Parameter that receives the metadata in every routine that has it. None: only parameters that comments
        name."""
        return self.parameter_name if self.uses_parameter else None

    @property
    def context_key(self) -> str | None:
        """Session variable that receives the metadata. None: none does."""
        return self.context_key_name if self.uses_context_key else None


def shares_transaction(endpoint: Endpoint, options: UploadOptions) -> bool:
    """Return whether upload handlers and routine share one transaction: a handler of the endpoint works in the database
    or an object store (uploads-8), or the routine is a function. False for an endpoint without uploads.

    With a function, neither its effects nor the files stay if the service is killed before the request is complete. A
    procedure can end transactions itself, so it shares one only because of a handler.
    """
    upload = endpoint.options.upload
    if upload is not None and endpoint.routine.kind is RoutineKind.FUNCTION:
        return True
    keys = () if upload is None else upload.handlers or (options.default_handler,)
    return any(not isinstance(options.handlers.get(key), Folder | None) for key in keys)
