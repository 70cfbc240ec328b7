"""Messages of JSON-RPC 2.0, as the Model Context Protocol sends them (mcp-5, mcp-6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from rowcall.core.text import exact_json

PROTOCOL = "2025-11-25"
"""Supported version of the Model Context Protocol."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
RESOURCE_NOT_FOUND = -32002
"""Defined by the Model Context Protocol, not by JSON-RPC."""


class RpcError(Exception):
    """A request cannot be answered with a result. code: of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """A request of JSON-RPC. id: any JSON value; None: the request has none."""

    method: str
    id: Any
    params: Mapping[str, Any]


def rpc_request(body: bytes) -> RpcRequest:
    """Parse a request. A blank body counts as an empty object. A method that is no string counts as empty, and `params`
    that are no object count as an empty one.

    Raises `RpcError` with `PARSE_ERROR` if the body is not JSON, and `INVALID_REQUEST` if it is not an object.
    """
    try:
        message = exact_json.parse(body) if body.strip() else {}
    except ValueError:
        raise RpcError(PARSE_ERROR, "Parse error") from None
    if not isinstance(message, dict):
        raise RpcError(INVALID_REQUEST, "Invalid Request")
    method, params = message.get("method"), message.get("params")
    return RpcRequest(
        method if isinstance(method, str) else "", message.get("id"), params if isinstance(params, dict) else {}
    )


def rpc_result(id_: Any, result: Mapping[str, Any]) -> bytes:
    """Return the response to a request. id_: of the request."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "result": result})


def rpc_error(id_: Any, error: RpcError) -> bytes:
    """Return the error response to a request. id_: of the request; None: it is unknown."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "error": {"code": error.code, "message": error.message}})
