"""Injected parameters: set from claims, from the client address, from the request headers, or with hashes.

Parameters for claims and address match by the name in the database: mapped names exactly, those of address and claims
JSON in any case (access-14 to access-16). Parameters for headers and hashes also match by the name in requests.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from rowcall.core.auth.options import LoginOptions
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, HeadersMode, ResultPath, ValueKind
from rowcall.core.endpoint.resolved_parameters import binding_parameters, unsupplied_parameters
from rowcall.core.errors.diagnostics import Diagnostic

_TEXTUAL = frozenset({ValueKind.TEXT, ValueKind.JSON, ValueKind.OTHER})


class Source(enum.Enum):
    """The source of an injected value."""

    CLAIM = "claim"
    CLAIMS_JSON = "claims json"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class InjectedParameter:
    """An injected parameter and the source of its value. index: of the parameter among those of the endpoint. claim:
    name of the claim, such as `user_id`; empty for other sources."""

    index: int
    parameter: EndpointParameter
    source: Source
    claim: str = ""


def injected_parameters(endpoint: Endpoint, mapping: LoginOptions) -> tuple[InjectedParameter, ...]:
    """Return the parameters that are set from claims or the client address; none without the option `user_parameters`.
    Fields of composites are left out."""
    if not endpoint.options.user_parameters:
        return ()
    return tuple(
        injected
        for index, parameter in enumerate(endpoint.parameters)
        if parameter.attribute is None and (injected := _injection_of(index, parameter, mapping)) is not None
    )


def claim_parameters(endpoint: Endpoint, mapping: LoginOptions) -> tuple[InjectedParameter, ...]:
    """Return the parameters of `injected_parameters` that are set from claims or claims JSON, without those that are
    set from the client address."""
    return tuple(item for item in injected_parameters(endpoint, mapping) if item.source is not Source.ADDRESS)


def _injection_of(index: int, parameter: EndpointParameter, mapping: LoginOptions) -> InjectedParameter | None:
    """Return the injection of a parameter; None: the mapping does not have its name, so it is not injected. index: of
    the parameter."""
    name = parameter.db_name
    if mapping.address_parameter is not None and name.lower() == mapping.address_parameter.lower():
        return InjectedParameter(index, parameter, Source.ADDRESS)
    if mapping.json_parameter is not None and name.lower() == mapping.json_parameter.lower():
        return InjectedParameter(index, parameter, Source.CLAIMS_JSON)
    claim = dict(mapping.parameters).get(name)
    return None if claim is None else InjectedParameter(index, parameter, Source.CLAIM, claim)


def hashed_parameters(endpoint: Endpoint) -> tuple[tuple[int, int], ...]:
    """Return pairs of indexes: the parameter that is set, and the one whose value is hashed for it. Pairs with an
    unknown name are left out."""
    indexes: dict[str, int] = {}
    for index, parameter in enumerate(endpoint.parameters):
        indexes.setdefault(parameter.db_name.lower(), index)
        indexes.setdefault(parameter.api_name.lower(), index)
    pairs = ((indexes.get(target.lower()), indexes.get(source.lower())) for target, source in endpoint.options.hashes)
    return tuple((target, source) for target, source in pairs if target is not None and source is not None)


def headers_parameter(endpoint: Endpoint) -> int | None:
    """Return the index of the optional parameter that has the configured name and receives the request headers as JSON.

    None: there is no such parameter, it filters or writes a column of a table, or the endpoint does not pass headers in
    a parameter (`request_headers`).
    """
    if endpoint.options.request_headers is not HeadersMode.PARAMETER:
        return None
    return next(
        (index for index, parameter in enumerate(endpoint.parameters) if _is_for_headers(endpoint, parameter)), None
    )


def filled_parameters(endpoint: Endpoint, mapping: LoginOptions) -> frozenset[int]:
    """Return the indexes of the parameters that the service fills: from claims, the client's address, request headers
    (also `If-Match`), SQL of the comment, hashes, metadata of uploads, or responses of other services.

    mapping: names the parameters that are filled from claims and the client's address.
    """
    indexes = {item.index for item in injected_parameters(endpoint, mapping)}
    indexes |= {target for target, source in hashed_parameters(endpoint) if target != source}
    indexes |= unsupplied_parameters(endpoint)
    outgoing = endpoint.outgoing
    indexes |= {*outgoing.filled, *outgoing.members, *outgoing.rows}
    indexes |= {index for index in (endpoint.version_index, headers_parameter(endpoint)) if index is not None}
    return frozenset(indexes)


def _is_for_headers(endpoint: Endpoint, parameter: EndpointParameter) -> bool:
    """Return whether the parameter receives the request headers: it has the configured name, is optional, does not
    filter or write a column of a table, and is no value of a query over the result (`of_query`).

    The name of an `of_query` parameter may be empty; an empty configured name means that no parameter gets the headers.
    """
    names = {parameter.db_name, parameter.api_name, parameter.db_name.lower(), parameter.api_name.lower()}
    # A parameter that filters or writes a table (exact) is never set from anything but the request.
    optional = parameter.has_default or parameter.defaulted
    return optional and not (parameter.exact or parameter.of_query) and endpoint.options.headers_parameter in names


def with_injected(endpoint: Endpoint, indexes: Collection[int], sources: Collection[int] = ()) -> Endpoint:
    """Return the endpoint for binding: the parameters `indexes` become optional, and their values are ignored if sent.

    sources: parameters of whose values hashes are made. They become optional too, but their values are read, also if
    they are among `indexes`.
    """
    parameters = list(endpoint.parameters)
    for index in indexes:
        parameters[index] = replace(
            parameters[index],
            has_default=True,
            kind=ValueKind.OTHER,
            array=False,
            defaulted=False,
            exact=False,
            ignored=index not in sources,
        )
    for index in sources:
        parameters[index] = replace(parameters[index], has_default=True)
    return replace(endpoint, parameters=tuple(parameters))


def overload_parameters(endpoint: Endpoint, mapping: LoginOptions) -> Sequence[EndpointParameter]:
    """Return the parameters whose names in a request select an overload. Those that are set by parameter injection, or
    with the hash of another parameter, are marked as optional and ignored.

    The parameter that receives the whole body, or the keys of the body without a parameter of their own, is left out,
    because no request contains its name.
    """
    claims = {item.index for item in injected_parameters(endpoint, mapping)}
    hashes = {target for target, source in hashed_parameters(endpoint) if target != source}
    bound = binding_parameters(with_injected(endpoint, claims | hashes))
    without = endpoint.raw_body or endpoint.patch_parameter
    return [item for own, item in zip(endpoint.parameters, bound, strict=True) if own is not without]


def identity_diagnostics(endpoint: Endpoint, mapping: LoginOptions) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each reason to leave the endpoint out: a parameter to inject has a type that cannot
    receive the text (sign-in-5, passkeys-3), a login does not return named columns, or a name in `parameter_hash` is
    that of no parameter. mapping: names the parameters to inject."""
    identity = endpoint.routine.identity
    for injected in (*injected_parameters(endpoint, mapping), *_composite_injections(endpoint, mapping)):
        parameter = injected.parameter
        whole = parameter.composite
        if whole is not None or (injected.source is not Source.ADDRESS and parameter.kind not in _TEXTUAL):
            value = {
                Source.ADDRESS: "the client's address",
                Source.CLAIMS_JSON: "the claims as JSON",
                Source.CLAIM: f"the claim {injected.claim}",
            }[injected.source]
            message = (
                f"{endpoint.name}: parameter {parameter.db_name} is {whole or parameter.cast} and would receive {value}"
                ", which is text; declare it as text or text[]"
            )
            yield Diagnostic(identity, None, f"{message}; it is left out", left_out=1)
    if endpoint.options.login and not _has_named_columns(endpoint):
        message = f"{endpoint.name}: a login has to return named columns, as `returns table (user_id text)` does"
        yield Diagnostic(identity, None, f"{message}; it is left out", left_out=1)
    for name in _unknown_hashes(endpoint):
        message = f"{endpoint.name}: {name} in parameter_hash is no parameter"
        yield Diagnostic(identity, None, f"{message}, so a plain password could reach SQL; it is left out", left_out=1)


def _composite_injections(endpoint: Endpoint, mapping: LoginOptions) -> Iterator[InjectedParameter]:
    """Yield an injection for each composite parameter whose name the mapping has, with the first field of the composite
    as its parameter; none without the option `user_parameters`.

    A composite cannot be injected, and clients could supply its fields. So `identity_diagnostics` leaves out an
    endpoint for which this yields something.
    """
    if endpoint.options.user_parameters:
        first_attributes = {item.position: (index, item) for index, item in reversed([*enumerate(endpoint.parameters)])}
        composites = (candidate for candidate in first_attributes.values() if candidate[1].attribute is not None)
        yield from (injected for item in composites if (injected := _injection_of(*item, mapping)) is not None)


def _has_named_columns(endpoint: Endpoint) -> bool:
    """Return whether the result is rows with column names."""
    return endpoint.shape.path is ResultPath.ROWS and endpoint.shape.named


def _unknown_hashes(endpoint: Endpoint) -> Iterator[str]:
    """Yield the names in `parameter_hash` lines that no parameter has."""
    if not endpoint.options.hashes:
        return
    known_names = {
        name.lower() for parameter in endpoint.parameters for name in (parameter.db_name, parameter.api_name)
    }
    for pair in endpoint.options.hashes:
        yield from (name for name in dict.fromkeys(pair) if name.lower() not in known_names)
