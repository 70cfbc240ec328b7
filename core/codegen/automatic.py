"""Parameters that the service fills itself, so that descriptions of an endpoint leave them out (clients-15)."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.core.auth.options import LoginOptions
from rowcall.core.auth.parameter_injection import filled_parameters
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter


def is_optional(parameter: EndpointParameter) -> bool:
    """Return whether a request may omit the parameter."""
    return parameter.has_default or parameter.defaulted or parameter.attribute is not None


def automatic_parameters(endpoint: Endpoint, claims: LoginOptions) -> frozenset[int]:
    """Return the indexes of parameters that a request need not send and whose values it cannot choose: those of
    `filled_parameters`, except in the path, as the URL cannot be built without them. claims: as for that function.
    """
    return frozenset(index for index in filled_parameters(endpoint, claims) if not endpoint.parameters[index].path)


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
