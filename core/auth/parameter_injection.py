"""Parameters that the service fills itself: from claims, from the client's address, with hashes.

Matching is by the name in the database: mapped names exactly, those of address and claims JSON in any case
(access-14 to access-16).
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from rowcall.core.auth.options import ClaimMapping
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, HeadersMode, ResultPath, ValueKind
from rowcall.core.errors.diagnostics import Diagnostic

_TEXTUAL = frozenset({ValueKind.TEXT, ValueKind.JSON, ValueKind.OTHER})


class Source(enum.Enum):
    CLAIM = "claim"
    CLAIMS_JSON = "claims json"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class InjectedParameter:
    """One parameter and where its value comes from."""

    index: int
    parameter: EndpointParameter
    source: Source
    claim: str = ""


def injected_parameters(endpoint: Endpoint, mapping: ClaimMapping) -> tuple[InjectedParameter, ...]:
    if not endpoint.options.user_parameters:
        return ()
    return tuple(
        found
        for index, parameter in enumerate(endpoint.parameters)
        if parameter.attribute is None and (found := _filled(index, parameter, mapping)) is not None
    )


def _filled(index: int, parameter: EndpointParameter, mapping: ClaimMapping) -> InjectedParameter | None:
    name = parameter.db_name
    if mapping.address_parameter is not None and name.lower() == mapping.address_parameter.lower():
        return InjectedParameter(index, parameter, Source.ADDRESS)
    if mapping.json_parameter is not None and name.lower() == mapping.json_parameter.lower():
        return InjectedParameter(index, parameter, Source.CLAIMS_JSON)
    claim = dict(mapping.parameters).get(name)
    return None if claim is None else InjectedParameter(index, parameter, Source.CLAIM, claim)


def hashed_parameters(endpoint: Endpoint) -> tuple[tuple[int, int], ...]:
    """Index of the parameter to fill and of the one that is hashed for it."""
    indexes: dict[str, int] = {}
    for index, parameter in enumerate(endpoint.parameters):
        indexes.setdefault(parameter.db_name.lower(), index)
        indexes.setdefault(parameter.api_name.lower(), index)
    pairs = ((indexes.get(target.lower()), indexes.get(source.lower())) for target, source in endpoint.options.hashes)
    return tuple((target, source) for target, source in pairs if target is not None and source is not None)


def headers_parameter(endpoint: Endpoint) -> int | None:
    """Index of the parameter that receives the headers of the request as JSON; None in the other modes."""
    if endpoint.options.request_headers is not HeadersMode.PARAMETER:
        return None
    return next((index for index, one in enumerate(endpoint.parameters) if _is_for_headers(endpoint, one)), None)


def _is_for_headers(endpoint: Endpoint, parameter: EndpointParameter) -> bool:
    names = {parameter.db_name, parameter.api_name, parameter.db_name.lower(), parameter.api_name.lower()}
    # What filters or writes a table (exact) is never filled by something that the request does not say.
    optional = parameter.has_default or parameter.defaulted
    return optional and not parameter.exact and endpoint.options.headers_parameter in names


def with_injected(endpoint: Endpoint, indexes: Collection[int], sources: Collection[int] = ()) -> Endpoint:
    """The endpoint as binding shall see it: what will be filled need not be sent, and is not looked at when it is.

    sources: parameters whose value is looked at although they need not be sent.
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


def identity_diagnostics(endpoint: Endpoint, mapping: ClaimMapping) -> Iterator[Diagnostic]:
    """What cannot work and is left out (sign-in-5, passkeys-3), and hashes of what is no parameter."""
    identity = endpoint.routine.identity
    for filled in (*injected_parameters(endpoint, mapping), *_composites(endpoint, mapping)):
        parameter = filled.parameter
        whole = parameter.composite
        if whole is not None or (filled.source is not Source.ADDRESS and parameter.kind not in _TEXTUAL):
            what = {
                Source.ADDRESS: "the client's address",
                Source.CLAIMS_JSON: "the claims as JSON",
                Source.CLAIM: f"the claim {filled.claim}",
            }[filled.source]
            message = (
                f"{endpoint.name}: parameter {parameter.db_name} is {whole or parameter.cast} and would receive {what}"
                ", which is text; declare it as text or text[]"
            )
            yield Diagnostic(identity, None, f"{message}; it is left out", left_out=1)
    if endpoint.options.login and not _has_named_columns(endpoint):
        message = f"{endpoint.name}: a login has to return named columns, as `returns table (user_id text)` does"
        yield Diagnostic(identity, None, f"{message}; it is left out", left_out=1)
    for name in _unknown_hashes(endpoint):
        message = f"{endpoint.name}: {name} in parameter_hash is no parameter"
        yield Diagnostic(identity, None, f"{message}, so a plain password could reach SQL; it is left out", left_out=1)


def _composites(endpoint: Endpoint, mapping: ClaimMapping) -> Iterator[InjectedParameter]:
    """Composite parameters with the name of one that is filled: clients would say what the service should."""
    if endpoint.options.user_parameters:
        first = {one.position: (index, one) for index, one in reversed([*enumerate(endpoint.parameters)])}
        composites = (found for found in first.values() if found[1].attribute is not None)
        yield from (filled for one in composites if (filled := _filled(*one, mapping)) is not None)


def _has_named_columns(endpoint: Endpoint) -> bool:
    return endpoint.shape.path is ResultPath.ROWS and endpoint.shape.named


def _unknown_hashes(endpoint: Endpoint) -> Iterator[str]:
    if not endpoint.options.hashes:
        return
    known = {name.lower() for parameter in endpoint.parameters for name in (parameter.db_name, parameter.api_name)}
    for pair in endpoint.options.hashes:
        yield from (name for name in dict.fromkeys(pair) if name.lower() not in known)
