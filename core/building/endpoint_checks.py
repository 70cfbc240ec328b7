"""Checks of an endpoint after comment and routine have been combined (comments-7, comments-8).

A check is a function from endpoint and used annotations to diagnostics. `CHECKS` are run for every endpoint,
`OF_ANNOTATIONS` only if the annotation was used: in a schema with 22,000 endpoints, few use any of these annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rowcall.core.binding.written_values import read_value
from rowcall.core.catalogue.catalog import RoutineKind, Volatility
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, HeadersMode, ValueKind
from rowcall.core.endpoint.header_lines import shared_personal_answers, unknown_placeholders
from rowcall.core.endpoint.resolved_parameters import expression_diagnostics
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.http.routing import RouteError, check_path, unbound_segments
from rowcall.core.outgoing.request_definition import IDEMPOTENT
from rowcall.core.queryable.language import obstacle, unique_columns, unknown_unique
from rowcall.core.sqlfile.source import FileSource
from rowcall.core.tables.routines import TableOperation

Used = Mapping[str, str]
"""Name of an annotation → its comment line."""

Check = Callable[[Endpoint, Used], Iterator[Diagnostic]]


def check_endpoint(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Yield the diagnostics of all checks that concern the endpoint."""
    for check in CHECKS:
        yield from check(endpoint, used)
    for name, check in OF_ANNOTATIONS.items():
        if name in used:
            yield from check(endpoint, used)
    if "max_rows" in used and "queryable" not in used:
        yield from _queryable_without_effect(endpoint, used)


def _volatile_get(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Warn of a volatile routine behind GET: browsers, caches and link checkers send GET without a user's request."""
    routine = endpoint.routine
    if endpoint.method == "GET" and routine.volatility is Volatility.VOLATILE and not endpoint.options.internal:
        message = f"{endpoint.name} runs a volatile routine, which may write; declare it stable if it only reads"
        yield Diagnostic(routine.identity, None, message, informational=True)


def _impossible_path(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report a path that cannot be routed, which leaves the endpoint out."""
    try:
        check_path(endpoint)
    except RouteError as error:
        line = used.get("path") or used.get("http")
        yield Diagnostic(endpoint.routine.identity, line, f"{error}; give it another one", left_out=1)


def _unbound_segments(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report `{name}` in the path that names no parameter."""
    if "{" not in endpoint.path:
        return
    for name in unbound_segments(endpoint):
        line = used.get("path") or used.get("http")
        message = f"{{{name}}} in {endpoint.path} names no parameter: it matches any text, and no parameter receives it"
        yield Diagnostic(endpoint.routine.identity, line, message)


def _name_clashes(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report parameters that have the same name in requests, such as `_id` and `id`."""
    parameters_by_name: dict[str, EndpointParameter] = {}
    for parameter in endpoint.parameters:
        other = parameters_by_name.setdefault(parameter.api_name, parameter)
        if other is not parameter:
            message = f"parameters {other.field} and {parameter.field} share the name {parameter.api_name} in requests"
            yield Diagnostic(endpoint.routine.identity, None, message)


def _file_warnings(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report warnings from reading the file of the endpoint."""
    source = endpoint.routine.source
    if isinstance(source, FileSource):
        yield from (Diagnostic(endpoint.routine.identity, None, warning) for warning in source.warnings)


def _raw_without_effect(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report `raw` for a file with several statements, whose response is a JSON object."""
    if endpoint.shape.parts:
        message = "the response of a file with several statements is one JSON object; raw has no effect"
        yield Diagnostic(endpoint.routine.identity, used["raw"], message)


def _repeated_members(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report equal keys in one JSON object of the response, of which most JSON readers use only the last.

    Expanded composites and `result` can cause them.
    """
    shape, options = endpoint.shape, endpoint.options
    if options.void or options.login or options.logout or (options.raw and not shape.parts):
        return
    clash = _first_repeated_key(tuple(part.key for part in shape.parts if part.key is not None))
    if clash is not None:
        message = f"two results are called {clash!r} in one response, of which most JSON readers use the last"
        yield Diagnostic(endpoint.routine.identity, used.get("result"), f"{endpoint.name}: {message}; rename one")
    for part in (shape, *(part.shape for part in shape.parts)):
        keys = (column.key for column in part.columns if column.group is None or not options.nested)
        clash = _first_repeated_key(tuple(keys)) if part.named else None
        if clash is not None:
            message = f"two columns are called {clash!r} in one row, of which most JSON readers use the last"
            remedy = "rename one, or keep composites whole with nested"
            yield Diagnostic(endpoint.routine.identity, None, f"{endpoint.name}: {message}; {remedy}")


def _first_repeated_key(keys: tuple[bytes, ...]) -> str | None:
    """Return the first repeated key; None: no key is repeated."""
    if len(set(keys)) == len(keys):
        return None
    return next(key.decode() for index, key in enumerate(keys) if key in keys[:index])


def _raw_body(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report `body_parameter_name` that names no parameter, and `param_type` beside it, which has no effect."""
    line = used["body_parameter_name"]
    if endpoint.options.upload is not None:
        return  # The check of uploads reports this.
    if endpoint.raw_body is None:
        message = f"{endpoint.options.body_parameter} is no parameter of the routine; the body is read as usual"
        yield Diagnostic(endpoint.routine.identity, line, message)
    elif "param_type" in used and endpoint.options.transport is Transport.BODY:
        message = "the body goes to one parameter; the others are taken from the query string"
        yield Diagnostic(endpoint.routine.identity, used["param_type"], message)


def _headers_parameter(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report a parameter for the request's headers that does not exist or has no default."""
    line = used["request_headers_parameter_name"]
    name = endpoint.options.headers_parameter
    if endpoint.options.request_headers is not HeadersMode.PARAMETER or name is None:
        return
    names = {
        name.lower(): parameter for parameter in endpoint.parameters for name in (parameter.api_name, parameter.db_name)
    }
    parameter = names.get(name.lower())
    if parameter is None:
        message = f"{name} is no parameter of the routine, which therefore gets no headers; add this parameter"
        yield Diagnostic(endpoint.routine.identity, line, message)
    elif not (parameter.has_default or parameter.defaulted):
        message = f"{name} has no default, so requests have to supply it; give it one, and the headers fill it"
        yield Diagnostic(endpoint.routine.identity, line, message)


def _examples(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report examples for unknown parameters, and values of a wrong type."""
    document = endpoint.options.document
    if document is None:
        return
    parameters_by_name = {
        name.lower(): parameter for parameter in endpoint.parameters for name in (parameter.api_name, parameter.db_name)
    }
    for name, text in document.examples:
        parameter = parameters_by_name.get(name)
        try:
            problem = f"{name} is no parameter; nothing is shown" if parameter is None else None
            if parameter is not None:
                read_value(parameter, text)
        except ValueError:
            problem = f"{text} is no value of {name} as JSON has it; it is shown as a text"
        if problem is not None:
            yield Diagnostic(endpoint.routine.identity, used["openapi"], f"openapi example: {problem}")


def _placeholders(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    return unknown_placeholders(endpoint)


def _shared_answers(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    return shared_personal_answers(endpoint)


def _encrypt_beside_proxy(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report `encrypt` beside `proxy`, which would forward the values unencrypted; the endpoint is left out."""
    encryption = endpoint.options.encryption
    if endpoint.options.proxy is not None and encryption and (encryption.all_parameters or encryption.parameters):
        message = "encrypt applies only to the routine: proxy forwards the request unencrypted"
        yield Diagnostic(endpoint.routine.identity, used["encrypt"], f"{message}; the endpoint is left out", left_out=1)


def _expressions(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    return expression_diagnostics(endpoint)


def _replica_without_effect(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report `read_from replica` if calls never run on a replica, or if the routine is volatile, so that its writes
    fail there."""
    reading = endpoint.options.reading
    if reading is None or not reading.replica:
        return
    reason = _replica_refusal(endpoint)
    if reason is not None:
        message = f"{endpoint.name} is never read from a replica: {reason}; take the line away"
    elif endpoint.routine.volatility is Volatility.VOLATILE:
        message = (
            f"{endpoint.name} runs a volatile routine on replicas, where every write fails; declare it stable if it "
            "only reads, or say read_from primary"
        )
    else:
        return
    yield Diagnostic(endpoint.routine.identity, used.get("read_from"), message)


def _replica_refusal(endpoint: Endpoint) -> str | None:
    """Return why calls of the endpoint never run on a replica, as the end of a sentence; None if they can."""
    options = endpoint.options
    if endpoint.routine.kind is RoutineKind.PROCEDURE:
        return "procedures are not, so make it a function"
    if options.upload is not None:
        return "uploads write"
    if options.login or options.logout:
        return "sign-ins are not"
    if endpoint.recorded or options.publishing is not None:
        return "its requests are recorded, or its results published, with the call"
    if options.connection is not None:
        return f"it runs on the connection {options.connection}"
    return "its routine does not run" if endpoint.passes_through else None


def _hedge_without_effect(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report `hedge` without a proxy, or with a method whose requests must not be sent twice."""
    line = used["hedge"]
    proxy = endpoint.options.proxy
    method = None if proxy is None else proxy.method or endpoint.method
    if method is None:
        yield Diagnostic(endpoint.routine.identity, line, "hedge has no effect, because the endpoint is not a proxy")
    elif method not in IDEMPOTENT:
        message = f"{method} is not hedged: what is sent twice may take effect twice; take the line away"
        yield Diagnostic(endpoint.routine.identity, line, message)


def _signing_without_effect(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report `login` and `logout` without effect, and lines beside them that have no effect."""
    options = endpoint.options
    word = "login" if options.login else "logout"
    identity = endpoint.routine.identity
    if endpoint.passes_through or options.proxy_out is not None:
        message = f"{word} has no effect: another service sends the response, and no session begins or ends here"
        yield Diagnostic(identity, used.get(word), message)
    elif options.login and "logout" in used:
        yield Diagnostic(identity, used["logout"], "logout has no effect beside login: the routine signs in")
    if options.open_login and "authorize" in used:
        yield Diagnostic(identity, used["authorize"], "authorize has no effect: any caller may sign in")


def _status_without_effect(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report `status` for responses whose status is set by the service or by another server."""
    options = endpoint.options
    if options.success_status is None:
        return
    if endpoint.passes_through or options.proxy_out is not None:
        reason = "another service gives the response"
    elif options.login or options.logout:
        reason = f"the response is that of {'login' if options.login else 'logout'}"
    elif options.invalidates:
        reason = "the response says what was invalidated"
    else:
        return
    yield Diagnostic(endpoint.routine.identity, used["status"], f"status has no effect: {reason}")


def _impersonation_by_anyone(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report `impersonate` without roles or users in `authorize`: no caller is admitted then."""
    if not endpoint.options.roles:
        message = "any caller could act as any user, so all are refused; authorize has to list roles or users"
        yield Diagnostic(endpoint.routine.identity, used["impersonate"], message)


def _queryable_without_effect(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report `queryable` and `max_rows` without effect, and pages of rows without a unique order."""
    identity, line = endpoint.routine.identity, used.get("queryable", used.get("max_rows"))
    queryable, source = endpoint.options.queryable, endpoint.routine.source
    if queryable is None:
        reason = obstacle(endpoint) or "it needs queryable page"
        # The comment of a table applies to all its operations.
        if not (isinstance(source, TableOperation) and source.writes):
            yield Diagnostic(identity, line, f"{endpoint.name}: {line} has no effect: {reason}")
        return
    if not queryable.page:
        words = ["by"] if queryable.unique else []
        words += ["max_rows"] if "max_rows" in used else []
        for word in words:
            yield Diagnostic(identity, line, f"{endpoint.name}: {word} has no effect without queryable page")
        return
    unknown = unknown_unique(endpoint)
    if unknown is not None:
        yield Diagnostic(identity, line, f"{endpoint.name}: by {unknown} names no column of the result")
    elif not unique_columns(endpoint):
        message = "no columns identify a row, so pages have no cursors, and may repeat or miss rows; add by <column>"
        yield Diagnostic(identity, line, f"{endpoint.name}: {message}")


def _merge_patch_without_effect(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Report a parameter that should receive the members of a body (merge patch) and cannot."""
    name = endpoint.options.patch_parameter
    parameter = next((item for item in endpoint.parameters if item.db_name == name), None)
    if parameter is None:
        return
    if parameter.kind is not ValueKind.JSON or parameter.array:
        reason = "its type has to be json or jsonb"
    elif endpoint.transport is not Transport.BODY:
        reason = "the values of this endpoint are not in a JSON body"
    else:
        return
    message = f"{endpoint.name}: {name} is no merge patch: {reason}"
    yield Diagnostic(endpoint.routine.identity, used["param"], message)


CHECKS: tuple[Check, ...] = (
    _volatile_get,
    _impossible_path,
    _unbound_segments,
    _name_clashes,
    _repeated_members,
    _file_warnings,
    _placeholders,
    _shared_answers,
    _expressions,
    _replica_without_effect,
)
OF_ANNOTATIONS: Mapping[str, Check] = {
    "body_parameter_name": _raw_body,
    "request_headers_parameter_name": _headers_parameter,
    "openapi": _examples,
    "raw": _raw_without_effect,
    "param": _merge_patch_without_effect,
    "queryable": _queryable_without_effect,
    "hedge": _hedge_without_effect,
    "encrypt": _encrypt_beside_proxy,
    "login": _signing_without_effect,
    "logout": _signing_without_effect,
    "impersonate": _impersonation_by_anyone,
    "status": _status_without_effect,
}
"""Checks by the names of annotations."""
