"""An endpoint as plain data, for programs: one entry of `rowcall --endpoints` (command-9)."""

from __future__ import annotations

from typing import Any

from rowcall.core.catalogue.catalog import Routine, RoutineKind
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultPath
from rowcall.core.tables.routines import TableOperation

_KINDS = {
    RoutineKind.FUNCTION: "Function",
    RoutineKind.PROCEDURE: "Procedure",
    RoutineKind.TABLE: "Table",
    RoutineKind.VIEW: "View",
    RoutineKind.FILE: "SqlFile",
}
_TRANSPORTS = {Transport.QUERY: "QueryString", Transport.BODY: "BodyJson"}


def describe_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    """Return the description of an endpoint as a JSON object, for `rowcall --endpoints` and the console.

    `method`, `path`, `routine`, `parameters` and `requiresAuthorization` are always members; other members whose value
    is false, empty or None are left out, and so is `isPathParameter` of a parameter if it is false.
    """
    options = endpoint.options
    always = {
        "method": endpoint.method,
        "path": endpoint.path,
        "routine": _routine(endpoint),
        "parameters": [_parameter(parameter, endpoint.routine) for parameter in endpoint.parameters],
    }
    columns = [
        {"name": column.key.decode(), "originalName": column.column.name, "type": column.column.type_name}
        for column in endpoint.shape.columns
    ]
    access = {
        "requestParamType": _TRANSPORTS[endpoint.transport],
        "requiresAuthorization": options.requires_authorization,
    }
    added = {
        "authorizeRoles": list(options.roles),
        "authorizeWithin": options.fresh,
        "secondFactor": options.second_factor,
        "login": options.login,
        "logout": options.logout,
        "impersonation": None if options.impersonation is None else options.impersonation.value,
        "securitySensitive": options.sensitive,
        "raw": options.raw,
        "internal": options.internal,
        "cached": options.caching is not None and options.caching.requested,
        "upload": options.upload is not None,
        "isProxy": options.proxy is not None,
        "userContext": options.user_context,
        "roleFromClaim": options.role_from_claim,
        "userParameters": options.user_parameters,
        "connectionName": options.connection,
        "sseEventsPath": options.events.path if options.events is not None else None,
        "rateLimiterPolicy": options.rate_limiter,
        "errorCodePolicy": options.error_policy,
        "leavesInSession": sorted(trace.value for trace in endpoint.session.traces),
        "leavesBecause": endpoint.session.reason,
        "customParameters": dict(options.custom),
    }
    result_columns = {"returnColumns": columns} if columns else {}
    return {**always, **result_columns, **access, **{name: value for name, value in added.items() if value}}


def _routine(endpoint: Endpoint) -> dict[str, Any]:
    routine = endpoint.routine
    source = routine.source
    operation = {"crudType": source.operation.command.value.capitalize()} if isinstance(source, TableOperation) else {}
    return {
        "schema": routine.schema,
        "name": routine.name,
        "type": _KINDS[routine.kind],
        **operation,
        "returnsSet": routine.returns_set,
        "isVoid": endpoint.shape.path is ResultPath.VOID,
        "definition": _definition(routine),
    }


def _definition(routine: Routine) -> str:
    """Return the signature of a routine, or the identity of its source."""
    if routine.source is not None:
        identity = routine.source.identity
        return f"SQL file: {identity}" if routine.kind is RoutineKind.FILE else identity
    parameters = ", ".join(
        f"{parameter.name} {parameter.type_name}" if parameter.name else parameter.type_name
        for parameter in routine.parameters
    )
    returns = f" returns {_format_result_type(routine)}" if routine.kind is RoutineKind.FUNCTION else ""
    return f"{routine.kind.value} {routine.schema}.{routine.name}({parameters}){returns}"


def _format_result_type(routine: Routine) -> str:
    """Return the result type as the signature of a function has it after `returns`: `text`, `setof orders`, `table(id
    integer)`."""
    columns = ", ".join(f"{column.name} {column.type_name}" for column in routine.columns)
    if columns and not routine.returns_composite:
        return f"table({columns})" if routine.returns_set else f"record({columns})"
    return f"setof {routine.return_type_name}" if routine.returns_set else routine.return_type_name


def _parameter(parameter: EndpointParameter, routine: Routine) -> dict[str, Any]:
    """Return the description of a parameter as a JSON object."""
    declared = routine.parameters[parameter.position].type_name
    described: dict[str, Any] = {
        "name": parameter.api_name,
        "originalName": parameter.field or parameter.db_name,
        "type": parameter.cast if parameter.attribute is not None else declared,
        "hasDefault": parameter.has_default or parameter.defaulted,
    }
    return {**described, "isPathParameter": True} if parameter.path else described
