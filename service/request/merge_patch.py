"""`param … is merge patch`: a parameter that gets all members of the body for which there is no other parameter, as a
JSON object (RFC 7396).

The object distinguishes a member that is missing, whose column the routine leaves unchanged, from one that is null,
whose column it sets to NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.binding_error import BindingError
from rowcall.core.text import json_text
from rowcall.service.request.binding import body_limit, read_fields
from rowcall.service.request_context.request_context import RequestContext, Step

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


def collect_patch(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that collects the members before binding; None: the endpoint has no such parameter of type JSON,
    or its values are not fields of the body. The step raises `BindingError` if the body, or a value that the client
    sends for the parameter itself, is no JSON object, and `Problem` as `read_body` does."""
    parameter = endpoint.patch_parameter
    if parameter is None:
        return None
    patch = parameter.api_name
    # Members named like a path parameter are no part of the patch either; binding ignores them, as the path counts.
    known = frozenset(item.api_name for item in endpoint.parameters) - {patch}
    groups = frozenset(item.group for item in endpoint.parameters if item.group is not None)
    limit = body_limit(endpoint, services)

    async def collect(context: RequestContext) -> None:
        body = context.body
        if body is None:
            body = await read_fields(context, services, limit)
        try:
            members = json_text.body_members(body or b"{}")
            collected = [pair for pair in members if pair[0] not in known and pair[0] not in groups]
            # A client that knows the parameter may also send it by its name.
            named = [pair for pair in collected if pair[0] == patch]
            if named and not named[0][1].startswith(b"{"):
                raise BindingError(400, f"parameter '{patch}': an object with the members to change is needed", patch)
            inner = [pair for _, value in named for pair in json_text.object_members(value)]
        except json_text.JsonTextError as error:
            raise BindingError(400, str(error)) from None
        inner += (pair for pair in collected if pair[0] != patch)
        others = [pair for pair in members if pair[0] in known or pair[0] in groups]
        context.body = _object([*others, (patch, _object(inner))])

    return collect


def _object(members: list[tuple[str, bytes]]) -> bytes:
    return b"{" + b",".join(orjson.dumps(name) + b":" + value for name, value in members) + b"}"
