"""The endpoints as resources of the Model Context Protocol: a list of endpoints, and an OpenAPI document.

Endpoints in, texts out. The MCP server decides which endpoints a caller may see, and passes only these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from rowcall.core.documents.openapi import TypesOf, document, is_published
from rowcall.core.documents.options import OpenApiOptions
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.postgrest.catalogue import PostgRestCatalogue

ENDPOINTS = "rowcall://catalogue/endpoints"
OPENAPI = "rowcall://catalogue/openapi"
_JSON = "application/json"

RESOURCES: tuple[dict[str, str], ...] = (
    {
        "uri": ENDPOINTS,
        "name": "endpoints",
        "description": "Every endpoint with its method, path, first line of its comment and who may call it.",
        "mimeType": _JSON,
    },
    {
        "uri": OPENAPI,
        "name": "openapi",
        "description": "The endpoints as an OpenAPI document: parameters, bodies, answers.",
        "mimeType": _JSON,
    },
)
"""`resources/list`."""


def resource_contents(
    uri: str,
    endpoints: Iterable[Endpoint],
    types_of: TypesOf,
    options: OpenApiOptions,
    catalogue: PostgRestCatalogue | None = None,
) -> dict[str, Any] | None:
    """Return the `result` of `resources/read`; None: no resource has this URI.

    endpoints: those that the caller may see; of these, the result has those for which `is_published` is true, and the
    OpenAPI document those for which `is_shown` is true. catalogue: of PostgREST's interface, for the OpenAPI document;
    None: there is no such interface.
    """
    if uri == ENDPOINTS:
        value: Any = [_line(item) for item in endpoints if is_published(item, options)]
    elif uri == OPENAPI:
        value = document(endpoints, types_of, options, catalogue)
    else:
        return None
    return {"contents": [{"uri": uri, "mimeType": _JSON, "text": orjson.dumps(value).decode()}]}


def _line(endpoint: Endpoint) -> dict[str, Any]:
    access = endpoint.access
    return {
        "method": endpoint.method,
        "path": endpoint.path,
        "routine": endpoint.routine.identity,
        "about": next(iter(endpoint.prose), "").strip(),
        "access": "anyone" if access.anonymous else (sorted(access.required) or "signed in"),
    }
