"""Parameters that the service fills itself, which descriptions of an endpoint may leave out (reference 07, 9.2)."""

from __future__ import annotations

from collections.abc import Set

from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter

_ADDRESS = "_ip_address"


def is_optional(parameter: EndpointParameter) -> bool:
    return parameter.has_default or parameter.defaulted or parameter.attribute is not None


def automatic_parameters(endpoint: Endpoint, claims: Set[str]) -> frozenset[int]:
    """Their indexes. One that a request has to send nevertheless is none of them, nor one that stands in the path.

    claims: database names of parameters that are filled from claims, where an endpoint asks for that.
    """
    upload = endpoint.options.upload
    names = {name for name, _ in endpoint.options.expressions}
    if upload is not None and upload.metadata is not None:
        names.add(upload.metadata)
    if endpoint.options.user_parameters:
        names |= claims | {_ADDRESS}
    rows = endpoint.outgoing.rows
    filled = endpoint.outgoing.filled | endpoint.outgoing.members
    return frozenset(
        index
        for index, parameter in enumerate(endpoint.parameters)
        if not parameter.path
        and (index in rows or (is_optional(parameter) and (index in filled or parameter.db_name in names)))
    )
