"""Options of the descriptions of the endpoints: OpenAPI, reference page and files of requests.

They are apart from the modules that write the descriptions, because each worker has the options, but few workers write
a description.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Set
from dataclasses import dataclass, field

from rowcall.core.auth.options import LoginOptions
from rowcall.core.data.record import Record
from rowcall.core.endpoint.capabilities import NoticeLevel
from rowcall.core.formats.exports import ExportOptions
from rowcall.core.formats.table_formats import TableFormats
from rowcall.core.sections.declaration import choice, flag, objects, part, section, text, texts
from rowcall.core.sections.values import as_set, or_empty, path_like


class Nulls(enum.Enum):
    """How a schema says that a value may be NULL: not at all, with the keyword `nullable` (OpenAPI 3.0), or with `null`
    among its types (JSON Schema)."""

    OMITTED = "omitted"
    """The schema does not say so."""
    KEYWORD = "nullable"
    """`nullable: true`, as in OpenAPI 3.0."""
    TYPE = "type"
    """`"type": [..., "null"]`, as in JSON Schema and OpenAPI 3.1."""


VERSIONS = {"3.0": "3.0.3", "3.1": "3.1.1"}


def similar_to(pattern: str) -> re.Pattern[str]:
    """Return the regular expression, for `fullmatch`, of a `SIMILAR TO` pattern.

    `_` and `%` are wildcards; all other text is taken as a regular expression. Raises `re.error` if it is none.
    """
    return re.compile("".join({"_": ".", "%": ".*"}.get(sign, sign) for sign in pattern))


def _version(text: str) -> str:
    version = text.strip()
    if version not in VERSIONS:
        raise ValueError(f"{version!r} is none of {', '.join(VERSIONS)}")
    return VERSIONS[version]


def _pattern(text: str | None) -> str | None:
    if text is not None:
        try:
            similar_to(text)
        except re.error as error:
            raise ValueError(f"{text!r} is no pattern as SIMILAR TO takes it: {error}") from None
    return text


@section("Service:OpenApiOptions:Servers:[]")
class ServerKeys:
    url: str | None = text("Url", None, "Address. An entry without one is left out.")
    description: str | None = text("Description", None, "Description of the server.")


@section("Service:OpenApiOptions:SecuritySchemes:[]")
class SecuritySchemeKeys:
    name: str | None = text("Name", None, "Name of the scheme.")
    type: str | None = choice("Type", "Http ApiKey", None, "Kind of the scheme.")
    description: str | None = text("Description", None, "Description of the scheme.")
    scheme: str | None = choice("Scheme", "Basic Bearer", None, "HTTP scheme, for Http.")
    bearer_format: str | None = text("BearerFormat", None, "Format of bearer tokens.")
    in_: str | None = text("In", None, "Name of the header, query key or cookie, for ApiKey.")
    place: str | None = choice("ApiKeyLocation", "Header Query Cookie", None, "Place of the API key.")


@section("Service:OpenApiOptions")
class OpenApiTargets:
    """Destinations of the document. file: None: it is not written. path: None: it is not served."""

    file: str | None = text("FileName", "rowcall_openapi.json", "File of the document. null: none.", nullable=True)
    path: str | None = text("UrlPath", "/openapi.json", "Path of the document. null: not served.", nullable=True)
    overwrite: bool = flag("FileOverwrite", True, "Write over a file that exists.")


@section("Service:OpenApiOptions", "The OpenAPI document.")
class OpenApiOptions:
    """Options of the OpenAPI document."""

    enabled: bool = flag("Enabled", False, "Create the document.")
    targets = part(OpenApiTargets)
    title: str = text("DocumentTitle", None, "Title. null: name of the database.", convert=or_empty)
    version: str = text("DocumentVersion", "1.0.0", "Version of the document.")
    description: str | None = text("DocumentDescription", None, "Description.")
    spec: str = text("SpecVersion", "3.0", "OpenAPI version: 3.0 or 3.1.", convert=_version)
    add_current_server: bool = flag("AddCurrentServer", True, "Include the address of this service in the servers.")
    servers: tuple[tuple[str, str | None], ...] = objects("Servers", (), "Additional servers.", elements=ServerKeys)
    schemes: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = objects(
        "SecuritySchemes", (), "Security schemes. An empty list describes those in use.", elements=SecuritySchemeKeys
    )
    include: Set[str] = texts("IncludeSchemas", (), "Only these schemas. An empty list is all.", convert=as_set)
    exclude: Set[str] = texts("ExcludeSchemas", (), "Not these schemas.", convert=as_set)
    similar: str | None = text("NameSimilarTo", None, "Only routines SIMILAR TO this pattern.", convert=_pattern)
    not_similar: str | None = text("NameNotSimilarTo", None, "No routines SIMILAR TO this pattern.", convert=_pattern)
    interface: bool = flag("PostgRest", False, "Include the paths of PostgREST's interface.")
    closed_only: bool = flag("RequiresAuthorizationOnly", False, "Only endpoints that need a signed-in user.")
    omit_automatic: bool = flag(
        "OmitAutomaticParameters",
        True,
        "Leave out parameters that the service sets itself: claims, address, hashes, SQL.",
    )
    camel: bool = True
    """Fields of composites are in camelCase."""
    claims: LoginOptions = field(default_factory=LoginOptions)
    """Names the parameters that are injected from claims and the client's address."""
    tables: TableFormats = field(default_factory=TableFormats)
    """Formats that `table_format` may name."""
    exports: ExportOptions | None = None
    """Formats in which requests may ask for rows; None: exports are off."""
    level: NoticeLevel = NoticeLevel.INFO
    """Level of notices of event streams whose endpoints set none."""

    @property
    def nulls(self) -> Nulls:
        """How the document says that a value may be NULL."""
        return Nulls.KEYWORD if self.spec.startswith("3.0") else Nulls.TYPE


@dataclass(frozen=True, slots=True)
class OpenApi:
    """The document and its destinations. file: its path on disk; None: it is not written. path: its URL path; None: it
    is not served. overwrite: replace an existing file."""

    options: OpenApiOptions
    file: str | None
    path: str | None
    overwrite: bool


def _page_path(text: str) -> str | None:
    return path_like("/docs")(text.rstrip("/"))


@section("Docs", "A page with the API reference of the endpoints, from their OpenAPI document, with try-it.")
class ReferencePage(Record):
    """Options of the page with the API reference.

    document: URL path of the OpenAPI document. folder: directory of `FILES` on this host. path: URL path of the page.
    """

    document: str
    title: str
    folder: str

    enabled: bool = flag(
        "Enabled",
        False,
        "Serve the page. Needs the extra rowcall[docs], and the document at Service:OpenApiOptions:UrlPath.",
    )
    path: str = text("Path", "/docs", "Path of the page.", convert=_page_path)
    closed: bool = flag("RequireAuthorization", False, "Serve the page to signed-in users only, but not the document.")


def _is_schema(word: str) -> bool:
    return word == "Schema"


@section("Service:HttpFileOptions", "Files of example requests, for editors that can send them.")
class HttpFileOptions:
    """Options of `.http` files. write, serve: whether the files are written, and whether they are served."""

    host: str
    """Base URL without a trailing slash."""

    enabled: bool = flag("Enabled", False, "Create the files.")
    option: str = choice(
        "Option", "Disabled File Endpoint Both", "File", "Write files, serve them, or both.", convert=str.lower
    )
    name: str = text("Name", None, "Name of the files. null: name of the database.", convert=or_empty)
    pattern: str = text("NamePattern", "{0}_{1}", "Pattern of file names: {0} the name, {1} the schema.")
    comment: str = choice(
        "CommentHeader", "None Simple Full", "Simple", "Comment above a request.", convert=str.capitalize
    )
    comments: bool = flag("CommentHeaderIncludeComments", True, "Include the text of the routine's comment.")
    by_schema: bool = choice(
        "FileMode", "Database Schema", "Schema", "One file, or one for each schema.", convert=_is_schema
    )
    overwrite: bool = flag("FileOverwrite", True, "Write over files that exist.")
    omit_automatic: bool = flag(
        "OmitAutomaticParameters",
        True,
        "Leave out parameters that the service sets itself: claims, address, hashes, SQL.",
    )
    claims: LoginOptions = field(default_factory=LoginOptions)

    @property
    def write(self) -> bool:
        return self.option in ("file", "both")

    @property
    def serve(self) -> bool:
        return self.option in ("endpoint", "both")
