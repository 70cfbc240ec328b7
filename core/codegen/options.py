"""What generated clients look like: what every language has, and what TypeScript adds (clients-1 to clients-3,
clients-1 to clients-3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowcall.core.auth.options import ClaimMapping

ERROR_TYPE = (
    "{status: number; title: string; detail?: string | null; hint?: string | null; "
    "errors?: {parameter: string; path: string; message: string}[]} | undefined"
)


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Options that clients of all languages have."""

    path: str
    """`{0}` is the schema or module."""
    overwrite: bool = True
    base_url: str = ""
    comment: str = "Simple"
    """Form of the routine in comments: `None`, `Simple` or `Full`."""
    comments: bool = True
    """Include the prose of the routines' comments."""
    by_schema: bool = True
    status_code: bool = True
    base_url_from: str | None = None
    parse_url: bool = False
    parse_request: bool = False
    header: tuple[str, ...] = ()
    skip_routines: frozenset[str] = frozenset()
    skip_functions: frozenset[str] = frozenset()
    skip_paths: frozenset[str] = frozenset()
    skip_schemas: frozenset[str] = frozenset()
    json_type: str = "string"
    routine_names: bool = False
    export_urls: bool = False
    unique_models: bool = False
    xsrf_header: str | None = None
    export_sources: bool = True
    imports: tuple[str, ...] = ()
    headers: Mapping[str, str | None] = field(default_factory=dict)
    """Name → expression in the language of the client."""
    schema_names: bool = True
    omit_automatic: bool = True
    prefix: str = "/api"
    execution_header: str = "X-NpgsqlRest-ID"
    camel: bool = True
    claims: ClaimMapping = field(default_factory=ClaimMapping)
    """Names the parameters that are injected from claims and the client's address."""
    event_level: str = "info"


@dataclass(frozen=True, slots=True)
class HookOptions:
    """Options of the files with TanStack Query hooks; each client file gets one."""

    path: str
    overwrite: bool = True
    prefix: str | None = None
    expose_keys: bool = True
    source: str = "@tanstack/react-query"
    header: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientCodeOptions(ClientOptions):
    """Options of TypeScript and JavaScript client code."""

    type_file: bool = True
    export_types: bool = False
    parse_query_from: str | None = None
    types: bool = True
    """False: JavaScript."""
    error_expression: str = "await response.json()"
    error_type: str = ERROR_TYPE
    hooks: HookOptions | None = None


@dataclass(frozen=True, slots=True)
class DartOptions(ClientOptions):
    """Options of Dart client code (clients-28, clients-29)."""

    models_file: bool = False
    error_name: str = "ApiError"
    result_name: str = "ApiResult"
    model_prefix: str = ""
    model_suffix: str = ""
    dates: bool = True
    """date, timestamp and timestamptz are `DateTime`."""


@dataclass(frozen=True, slots=True)
class PythonOptions(ClientOptions):
    """Options of Python client code."""
