"""Outgoing requests of an endpoint, from its parameters and its comment (outbound-9, proxies-9, proxies-10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rowcall.core.catalogue.catalog import Routine, TypeInfo, TypeKind
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, Options
from rowcall.core.endpoint.template import parse_template, placeholder_names, with_variables
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.outgoing.options import ProxyOptions, TypeOptions
from rowcall.core.outgoing.outgoing import Outgoing, TypeCall
from rowcall.core.outgoing.request_definition import RequestDefinition, read_definition

Variables = Mapping[str, str | None]
"""Variables of the environment that placeholders may name: name → value."""


def outgoing_requests(
    routine: Routine,
    parameters: Sequence[EndpointParameter],
    options: Options,
    types: Mapping[int, TypeInfo],
    *,
    type_options: TypeOptions | None,
    proxy_options: ProxyOptions | None,
    variables: Variables,
) -> Outgoing:
    """Return the requests that calls of a routine make, and the parameters that their responses fill.

    types: by oid. type_options, proxy_options: None if HTTP types, or proxies, are disabled; their requests are left
    out then. variables: of the environment, for placeholders; names in lower case.
    """
    calls = () if type_options is None else _calls(routine, tuple(parameters), types, type_options.fields, variables)
    replies = () if proxy_options is None or options.proxy is None else _replies(parameters, proxy_options.parameters)
    return Outgoing(calls, replies)


def _replies(parameters: Sequence[EndpointParameter], parts: Mapping[str, str]) -> tuple[tuple[int, str], ...]:
    """Return the parameters that receive the response of a proxy: index, and part of the response. parts: name in the
    database, in lower case → part."""
    named = (
        (index, parts.get(parameter.db_name.lower()))
        for index, parameter in enumerate(parameters)
        if parameter.attribute is None
    )
    return tuple((index, part) for index, part in named if part is not None)


def _calls(
    routine: Routine,
    parameters: tuple[EndpointParameter, ...],
    types: Mapping[int, TypeInfo],
    parts: Mapping[str, str],
    variables: Variables,
) -> tuple[TypeCall, ...]:
    """Return the requests of parameter types, one for each type. parts: attribute of the type → part of the
    response."""
    calls: dict[int, TypeCall] = {}
    for index, parameter in enumerate(parameters):
        info = _request_type(routine, parameter, types)
        if info is None:
            continue
        call = calls.get(info.oid)
        if call is None:
            definition = read_definition(info.comment or "").definition
            if definition is None:
                continue
            call = TypeCall(info.display, _with_variables(definition, placeholder_names(parameters), variables))
        calls[info.oid] = _with_parameter(call, index, parameter, info, parts)
    return tuple(calls.values())


def _request_type(routine: Routine, parameter: EndpointParameter, types: Mapping[int, TypeInfo]) -> TypeInfo | None:
    """Return the composite type of a parameter or, if the parameter is one attribute of a composite, the type of that
    composite. None: there is none, or the type has no comment."""
    declared = routine.parameters[parameter.position]
    info = types.get(declared.type_oid if parameter.attribute is not None else declared.record)
    return info if info is not None and info.kind is TypeKind.COMPOSITE and info.comment else None


def described_request(routine: Routine, parameter: EndpointParameter, types: Mapping[int, TypeInfo]) -> TypeInfo | None:
    """Return the composite type of a parameter if the comment of that type defines a request, else None."""
    info = _request_type(routine, parameter, types)
    return info if info is not None and read_definition(info.comment or "").definition is not None else None


def _with_parameter(
    call: TypeCall, index: int, parameter: EndpointParameter, info: TypeInfo, parts: Mapping[str, str]
) -> TypeCall:
    """Return the request with a parameter that its response fills: a whole row, or one attribute. index: of the
    parameter. info: its composite type. parts: as in `_calls`."""
    if parameter.attribute is None:
        row = tuple(parts.get(attribute.name) for attribute in info.attributes)
        return replace(call, rows=(*call.rows, (index, row)))
    part = parts.get(parameter.attribute)
    fields = call.fields if part is None else (*call.fields, (index, part))
    return replace(call, fields=fields, members=(*call.members, index))


def _with_variables(definition: RequestDefinition, names: Mapping[str, int], variables: Variables) -> RequestDefinition:
    """Return the request with variables of the environment in place of their placeholders. names: those of parameters,
    which take precedence."""
    if not variables:
        return definition

    def fill(text: str | None) -> str | None:
        return None if text is None else with_variables(text, names, variables)

    return replace(
        definition,
        url=with_variables(definition.url, names, variables),
        headers=tuple((name, with_variables(value, names, variables)) for name, value in definition.headers),
        content_type=fill(definition.content_type),
        body=fill(definition.body),
    )


def outgoing_diagnostics(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Yield diagnostics for placeholders that name no parameter, and for placeholders in the URL of a proxy, which are
    not replaced.
    """
    options = endpoint.options
    if options.proxy is None and options.proxy_out is None and not endpoint.outgoing.calls:
        return
    names = placeholder_names(endpoint.parameters)
    for word, forwarding in (("proxy", options.proxy), ("proxy_out", options.proxy_out)):
        if forwarding is not None and "{" in (forwarding.url or ""):
            message = f"{{…}} in the URL of {word} is not a placeholder and is sent unchanged"
            yield Diagnostic(endpoint.routine.identity, None, message)
    for call in endpoint.outgoing.calls:
        definition = call.definition
        texts = (definition.url, *(value for _, value in definition.headers), definition.content_type, definition.body)
        for text in texts:
            for unknown in parse_template(text or "", names).unknown:
                message = f"{{{unknown}}} in the request of type {call.name} names no parameter and is left unchanged"
                yield Diagnostic(endpoint.routine.identity, None, message)


def without_proxies(options: Options) -> Options:
    """Return the options without proxies, for `ProxyOptions:Enabled` false: only the routine runs (proxies-1)."""
    return replace(options, proxy=None, proxy_out=None)


def disabled_proxies(endpoint_name: str, identity: str, used: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each proxy annotation of an endpoint. Call this only if proxies are disabled.

    endpoint_name: method and path. identity: of the database object. used: the line of each annotation.
    """
    for name in ("proxy", "proxy_out"):
        if name in used:
            message = f"{endpoint_name}: {name} has no effect, as Service:ProxyOptions:Enabled is false"
            yield Diagnostic(identity, used[name], message)
