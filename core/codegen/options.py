"""What generated TypeScript and JavaScript look like (spec 2.6, reference 07, 2 and 16)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ERROR_TYPE = "{status: number; title: string; detail?: string | null} | undefined"


@dataclass(frozen=True, slots=True)
class HookOptions:
    """TanStack Query hooks, a file of them beside each client file."""

    path: str
    overwrite: bool = True
    prefix: str | None = None
    expose_keys: bool = True
    source: str = "@tanstack/react-query"
    header: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientCodeOptions:
    path: str
    """`{0}` is the schema or module."""
    overwrite: bool = True
    base_url: str = ""
    comment: str = "Simple"
    """None, Simple or Full."""
    comments: bool = True
    """The comments of the routines too."""
    by_schema: bool = True
    status_code: bool = True
    type_file: bool = True
    export_types: bool = False
    base_url_from: str | None = None
    parse_query_from: str | None = None
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
    types: bool = True
    """False: JavaScript."""
    unique_models: bool = False
    xsrf_header: str | None = None
    export_sources: bool = True
    imports: tuple[str, ...] = ()
    headers: Mapping[str, str | None] = field(default_factory=dict)
    """Name → JavaScript expression."""
    schema_names: bool = True
    error_expression: str = "await response.json()"
    error_type: str = ERROR_TYPE
    omit_automatic: bool = False
    prefix: str = "/api"
    execution_header: str = "X-NpgsqlRest-ID"
    camel: bool = True
    claims: frozenset[str] = frozenset()
    """Database names of parameters that are filled from claims."""
    event_level: str = "info"
    hooks: HookOptions | None = None
