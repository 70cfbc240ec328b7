"""What the service itself adds to a proxied request: claims as headers, and the values of parameters that no client
supplies (proxies-7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rowcall.core.auth.parameter_injection import injected_parameters
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ValueKind
from rowcall.core.endpoint.resolved_parameters import resolved_parameters
from rowcall.core.outgoing.forwarding import Automatic, AutomaticValue, Headers, JsonKind
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.response.headers import argument_text

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

_NUMERIC = frozenset({ValueKind.SMALLINT, ValueKind.INTEGER, ValueKind.BIGINT, ValueKind.FLOAT, ValueKind.NUMERIC})


def automatic_parameters(endpoint: Endpoint, services: Services) -> tuple[Automatic, ...]:
    """Return the parameters whose values the service adds to a proxied request, in the order of their declaration."""
    indexes = {item.index for item in injected_parameters(endpoint, services.options.auth.login)}
    indexes |= {item.target for item in resolved_parameters(endpoint)}
    indexes |= endpoint.outgoing.filled - {index for index, _ in endpoint.outgoing.replies}
    parameters = endpoint.parameters
    return tuple(Automatic(index, parameters[index].api_name, _kind(parameters[index])) for index in sorted(indexes))


def _kind(parameter: EndpointParameter) -> JsonKind:
    """Return how the value of a parameter is written in a JSON body. An array is a string."""
    if parameter.array:
        return JsonKind.STRING
    if parameter.kind in _NUMERIC or parameter.kind is ValueKind.BOOLEAN:
        return JsonKind.NATIVE
    return JsonKind.EMBEDDED if parameter.kind is ValueKind.JSON else JsonKind.STRING


def automatic_values(automatic: tuple[Automatic, ...], context: RequestContext) -> list[AutomaticValue]:
    """Return each parameter of `automatic` with its value in a bound request, as text; None is NULL."""
    return [(item, argument_text(context, item.index)) for item in automatic]


def context_names(services: Services) -> frozenset[str]:
    """Return the names, in lower case, of headers that only this service may set. If clients could send them, they
    could impersonate users.
    """
    mapping = services.options.auth.login
    keys = [key for key, _ in mapping.context]
    keys += [key for key in (mapping.json_key, mapping.address_key) if key is not None]
    return frozenset(key.lower() for key in keys)


def context_headers(endpoint: Endpoint, services: Services) -> Callable[[RequestContext], Headers] | None:
    """Return the function that makes headers of the session variables of a request: the client address, and the claims
    of the user if there is one. Variables without a value are left out. None: the endpoint has no `user_context`."""
    if not endpoint.options.user_context:
        return None
    mapping = services.options.auth.login
    address_of = services.auth.address

    def pairs(context: RequestContext) -> Iterator[tuple[str, bytes | None]]:
        if mapping.address_key is not None:
            yield mapping.address_key, address_of(context.scope)
        user = context.user
        if user is not None:
            if mapping.json_key is not None:
                yield mapping.json_key, user.json
            yield from ((key, user.texts.get(claim)) for key, claim in mapping.context)

    def headers(context: RequestContext) -> Headers:
        return [(key, value.decode()) for key, value in pairs(context) if value is not None]

    return headers
