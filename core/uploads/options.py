"""Options of uploads and of each handler, from `Service:UploadOptions` (uploads-1, uploads-2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowcall.core.data.record import Record
from rowcall.core.outgoing.aws_signature import Credentials
from rowcall.core.uploads.encodings import UTF8
from rowcall.core.uploads.protected import ProtectedFolders


@dataclass(frozen=True, slots=True)
class Common(Record):
    """Options that apply to every handler."""

    stop_after_first_success: bool = False
    included: str | None = None
    """Patterns of content types, separated by commas."""
    excluded: str | None = None
    buffer_size: int = 8192
    text_bytes: int = 4096
    control_bytes: int = 5
    image_types: str = "jpeg, png, gif, bmp, tiff, webp"
    claims_key: str = "claims"
    """Member with the claims of the caller in the metadata for row commands; empty: there is none."""


@dataclass(frozen=True, slots=True)
class LargeObjects(Record):
    check_text: bool = False
    check_image: bool = False


@dataclass(frozen=True, slots=True)
class Folder(Record):
    """Options of the handler `file_system`."""

    path: str = "/tmp/uploads"  # noqa: S108 - the documented default
    unique_name: bool = True
    create_path: bool = True
    check_text: bool = False
    check_image: bool = False


@dataclass(frozen=True, slots=True)
class Csv(Record):
    check_format: bool = True
    delimiters: str = ","
    quotes: bool = True
    blank_is_null: bool = True
    encoding: str = UTF8
    """One of `ENCODINGS`."""
    row_command: str = "call process_csv_row($1,$2,$3,$4)"


@dataclass(frozen=True, slots=True)
class Excel(Record):
    sheet_name: str | None = None
    all_sheets: bool = False
    time_format: str = "HH:mm:ss"
    date_format: str = "yyyy-MM-dd"
    datetime_format: str = "yyyy-MM-dd HH:mm:ss"
    row_is_json: bool = False
    max_cells: int = 10_000_000
    """Maximum number of cells of the sheets that are read, including empty ones up to the last column of a sheet."""
    row_command: str = "call process_excel_row($1,$2,$3,$4)"


@dataclass(frozen=True, slots=True)
class JsonLines(Record):
    check_format: bool = True
    row_command: str = "call process_jsonl_row($1,$2,$3,$4)"


@dataclass(frozen=True, slots=True)
class Resumable(Record):
    """Options of resumable uploads."""

    folder: str | None = None
    """Folder for unfinished uploads. None: one in the system's folder for temporary files."""
    max_size: int = 1_073_741_824
    """Maximum size of a file in bytes."""
    seconds: float = 86_400.0
    """Seconds after the last chunk after which an unfinished upload is removed."""
    most_unfinished: int | None = 1000
    """Maximum number of unfinished uploads. None, here and below: no limit."""
    most_bytes: int | None = 17_179_869_184
    """Maximum number of bytes of all unfinished uploads together."""
    most_of_client: int | None = 100
    """Maximum number of unfinished uploads of one user, or of one address."""


@dataclass(frozen=True, slots=True)
class ObjectStore(Record):
    """Options of the handler `s3`."""

    endpoint: str
    """Scheme, host and port."""
    region: str
    bucket: str
    credentials: Credentials
    path_style: bool = False
    """Whether the bucket is in the path, and not in the host name."""
    path: str = ""
    """Prefix of the names of objects."""
    unique_name: bool = True
    part_size: int = 8_388_608
    timeout: float = 60.0
    check_text: bool = False
    check_image: bool = False


HandlerOptions = LargeObjects | Folder | Csv | Excel | JsonLines | ObjectStore


@dataclass(frozen=True, slots=True)
class UploadOptions(Record):
    log_event: bool = True
    log_parameters: bool = False
    default_handler: str = "large_object"
    metadata_parameter: str | None = None
    """Parameter that receives the metadata in every routine that has it. None: only parameters that comments name."""
    context_key: str | None = None
    """Session variable that receives the metadata. None: none does."""
    common: Common = Common()
    handlers: Mapping[str, HandlerOptions] = field(default_factory=dict)
    """Handlers by key, in the order of the configuration. Empty: no endpoint takes files."""
    checks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Commands with which comments may have files checked: name → program and arguments."""
    resumable: Resumable = Resumable()
    protected: ProtectedFolders = field(default_factory=ProtectedFolders)
    """Folders into which no file is written."""
