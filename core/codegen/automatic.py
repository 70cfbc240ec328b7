"""Parameters that the service fills itself, so that descriptions of an endpoint leave them out (clients-15)."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.core.auth.options import LoginOptions
from rowcall.core.auth.parameter_injection import hashed_parameters, headers_parameter, injected_parameters
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter
from rowcall.core.endpoint.resolved_parameters import unsupplied_parameters


def is_optional(parameter: EndpointParameter) -> bool:
    """Return whether a request may omit the parameter."""
    return parameter.has_default or parameter.defaulted or parameter.attribute is not None


def automatic_parameters(endpoint: Endpoint, claims: LoginOptions) -> frozenset[int]:
    """Return the indexes of parameters that a request need not send and whose values it cannot choose.

    These are filled from claims, the client's address, request headers (also `If-Match`), SQL of the comment, hashes,
    metadata of uploads, or responses of other services. A parameter in the path is never one of them: the URL cannot be
    built without it. claims: options that name the parameters which are filled from claims and the client's address.
    """
    indexes = {item.index for item in injected_parameters(endpoint, claims)}
    indexes |= {target for target, source in hashed_parameters(endpoint) if target != source}
    indexes |= unsupplied_parameters(endpoint)
    outgoing = endpoint.outgoing
    indexes |= {*outgoing.filled, *outgoing.members, *outgoing.rows}
    if endpoint.version_index is not None:
        indexes.add(endpoint.version_index)
    headers = headers_parameter(endpoint)
    if headers is not None:
        indexes.add(headers)
    return frozenset(index for index in indexes if not endpoint.parameters[index].path)


def supplied_parameters(endpoint: Endpoint, claims: LoginOptions | None) -> Iterator[EndpointParameter]:
    """Yield the parameters that a request may supply, without those of a query over the result (`queryable`). Of
    several with one name, the first is yielded. claims: as for `automatic_parameters`, which are left out; None: they
    are yielded too."""
    automatic = frozenset() if claims is None else automatic_parameters(endpoint, claims)
    seen: set[str] = set()
    for index, parameter in enumerate(endpoint.parameters):
        if index not in automatic and parameter.api_name not in seen:
            seen.add(parameter.api_name)
            yield parameter
