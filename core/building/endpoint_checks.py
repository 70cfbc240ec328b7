"""What is wrong with an endpoint once comment and routine are put together (comments-7, comments-8).

A check is a function from endpoint and used annotations to diagnostics. `CHECKS` holds those of every endpoint, and
`OF_ANNOTATIONS` those that have nothing to say unless an annotation was used: 22,000 endpoints use few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rowcall.core.annotations import BY_NAME
from rowcall.core.binding.written_values import read_value
from rowcall.core.catalogue.catalog import RoutineKind, Volatility
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, HeadersMode
from rowcall.core.endpoint.header_lines import shared_personal_answers, unknown_placeholders
from rowcall.core.endpoint.resolved_parameters import expression_diagnostics
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.http.routing import RouteError, check_path, unbound_segments
from rowcall.core.outgoing.request_definition import IDEMPOTENT
from rowcall.core.sqlfile.source import FileSource

Used = Mapping[str, str]
"""Name of an annotation → the first comment line that was it."""

Check = Callable[[Endpoint, Used], Iterator[Diagnostic]]


def check_endpoint(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    for name, line in used.items():
        if not BY_NAME[name].in_effect:
            message = f"{endpoint.name}: the annotation {name} is understood but not in effect yet"
            yield Diagnostic(endpoint.routine.identity, line, message)
    for check in CHECKS:
        yield from check(endpoint, used)
    for name, check in OF_ANNOTATIONS.items():
        if name in used:
            yield from check(endpoint, used)


def _volatile_get(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Browsers, caches and link checkers follow GET without asking; whoever means a write should have said POST."""
    routine = endpoint.routine
    if endpoint.method == "GET" and routine.volatility is Volatility.VOLATILE and not endpoint.options.internal:
        message = f"{endpoint.name} runs a volatile routine, which may write; declare it stable if it only reads"
        yield Diagnostic(routine.identity, None, message, told=True)


def _impossible_path(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    try:
        check_path(endpoint)
    except RouteError as error:
        line = used.get("path") or used.get("http")
        yield Diagnostic(endpoint.routine.identity, line, f"{error}; give it another one", left_out=1)


def _unbound_segments(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    if "{" not in endpoint.path:
        return
    for name in unbound_segments(endpoint):
        line = used.get("path") or used.get("http")
        message = f"{{{name}}} in {endpoint.path} names no parameter: it takes any text, and nothing receives it"
        yield Diagnostic(endpoint.routine.identity, line, message)


def _name_clashes(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Two parameters that requests cannot tell apart, such as `_id` and `id`."""
    seen: dict[str, EndpointParameter] = {}
    for parameter in endpoint.parameters:
        other = seen.setdefault(parameter.api_name, parameter)
        if other is not parameter:
            message = f"parameters {other.field} and {parameter.field} share the name {parameter.api_name} in requests"
            yield Diagnostic(endpoint.routine.identity, None, message)


def _doubts_of_file(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    source = endpoint.routine.source
    if isinstance(source, FileSource):
        yield from (Diagnostic(endpoint.routine.identity, None, doubt) for doubt in source.warnings)


def _raw_in_vain(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    if endpoint.shape.parts:
        message = "the answer of a file with several statements is one JSON object; raw has no effect"
        yield Diagnostic(endpoint.routine.identity, used["raw"], message)


def _repeated_members(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Members of one name in one object: spread composites bring them, and `result` does. Readers of JSON keep one."""
    shape, options = endpoint.shape, endpoint.options
    if options.void or options.login or options.logout or (options.raw and not shape.parts):
        return
    found = _repeated(tuple(part.key for part in shape.parts if part.key is not None))
    if found is not None:
        message = f"two results are called {found!r} in one answer, of which most readers keep the last"
        yield Diagnostic(endpoint.routine.identity, used.get("result"), f"{endpoint.name}: {message}; rename one")
    for part in (shape, *(part.shape for part in shape.parts)):
        keys = (one.key for one in part.columns if one.group is None or not options.nested)
        found = _repeated(tuple(keys)) if part.named else None
        if found is not None:
            message = f"two columns are called {found!r} in one row of the answer, of which most readers keep the last"
            remedy = "rename one, or keep composites whole with nested"
            yield Diagnostic(endpoint.routine.identity, None, f"{endpoint.name}: {message}; {remedy}")


def _repeated(keys: tuple[bytes, ...]) -> str | None:
    """The first that comes again."""
    if len(set(keys)) == len(keys):
        return None
    return next(key.decode() for index, key in enumerate(keys) if key in keys[:index])


def _raw_body(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """A body that no parameter receives, and values that a comment sends where they cannot travel (4.5)."""
    line = used["body_parameter_name"]
    if endpoint.options.upload is not None:
        return  # who takes files has been told what becomes of the body
    if endpoint.raw_body is None:
        message = f"{endpoint.options.body_parameter} is no parameter of the routine; the body is read as usual"
        yield Diagnostic(endpoint.routine.identity, line, message)
    elif "param_type" in used and endpoint.options.transport is Transport.BODY:
        message = "the body goes to one parameter; the others are taken from the query string"
        yield Diagnostic(endpoint.routine.identity, used["param_type"], message)


def _headers_parameter(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """A parameter for the request's headers that is none, or that cannot be left to the service (7.6)."""
    line = used["request_headers_parameter_name"]
    wanted = endpoint.options.headers_parameter
    if endpoint.options.request_headers is not HeadersMode.PARAMETER or wanted is None:
        return
    names = {name.lower(): one for one in endpoint.parameters for name in (one.api_name, one.db_name)}
    found = names.get(wanted.lower())
    if found is None:
        yield Diagnostic(endpoint.routine.identity, line, f"{wanted} is no parameter of the routine; nothing is filled")
    elif not found.has_default:
        message = f"{wanted} has no default, so requests have to supply it; give it one, and the headers fill it"
        yield Diagnostic(endpoint.routine.identity, line, message)


def _examples(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Values that are shown for no parameter, or are none of its kind."""
    asked = endpoint.options.document
    if asked is None:
        return
    known = {name.lower(): one for one in endpoint.parameters for name in (one.api_name, one.db_name)}
    for name, text in asked.examples:
        found = known.get(name)
        try:
            wrong = f"{name} is no parameter; nothing is shown" if found is None else None
            if found is not None:
                read_value(found, text)
        except ValueError:
            wrong = f"{text} is no value of {name} as JSON has it; it is shown as a text"
        if wrong is not None:
            yield Diagnostic(endpoint.routine.identity, used["openapi"], f"openapi example: {wrong}")


def _placeholders(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    return unknown_placeholders(endpoint)


def _shared_answers(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    return shared_personal_answers(endpoint)


def _sent_on_as_it_came(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    wanted = endpoint.options.encryption
    if endpoint.options.proxy is not None and wanted and (wanted.all_parameters or wanted.parameters):
        message = "encrypt is for the routine alone: proxy sends the request on as it came, unencrypted"
        yield Diagnostic(endpoint.routine.identity, used["encrypt"], f"{message}; the endpoint is left out", left_out=1)


def _expressions(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    return expression_diagnostics(endpoint)


def _never_on_a_replica(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """`read_from replica` where it has no effect, and where it lets a write fail."""
    reading = endpoint.options.reading
    if reading is None or not reading.replica:
        return
    what = _kept_at_home(endpoint)
    if what is not None:
        message = f"{endpoint.name} is never read from a replica: {what}; take the line away"
    elif endpoint.routine.volatility is Volatility.VOLATILE:
        message = (
            f"{endpoint.name} runs a volatile routine on replicas, where every write fails; declare it stable if it "
            "only reads, or say read_from primary"
        )
    else:
        return
    yield Diagnostic(endpoint.routine.identity, used.get("read_from"), message)


def _kept_at_home(endpoint: Endpoint) -> str | None:
    options = endpoint.options
    if endpoint.routine.kind is RoutineKind.PROCEDURE:
        return "procedures are not, so make it a function"
    if options.upload is not None:
        return "uploads write"
    if options.login or options.logout:
        return "sign-ins are not"
    if options.connection is not None:
        return f"it runs on the connection {options.connection}"
    return "its routine does not run" if endpoint.passes_through else None


def _hedged_for_nothing(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    line = used["hedge"]
    wish = endpoint.options.proxy
    method = None if wish is None else wish.method or endpoint.method
    if method is None:
        yield Diagnostic(endpoint.routine.identity, line, "hedge is for proxies, and this is none: it has no effect")
    elif method not in IDEMPOTENT:
        message = f"{method} is not hedged: what is sent twice may take effect twice; take the line away"
        yield Diagnostic(endpoint.routine.identity, line, message)


def _signing_in_vain(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Lines beside `login` and `logout` that take their place, or that these take."""
    options = endpoint.options
    word = "login" if options.login else "logout"
    identity = endpoint.routine.identity
    if endpoint.passes_through or options.proxy_out is not None:
        message = f"{word} has no effect: another service gives the answer, and no session begins or ends here"
        yield Diagnostic(identity, used.get(word), message)
    elif options.login and "logout" in used:
        yield Diagnostic(identity, used["logout"], "logout has no effect beside login: the routine signs in")
    if options.open_login and "authorize" in used:
        yield Diagnostic(identity, used["authorize"], "authorize has no effect: everybody may try to sign in")


def _status_without_effect(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    """Responses that the service or another server makes have statuses of their own."""
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


def _nobody_may_act(endpoint: Endpoint, used: Used) -> Iterator[Diagnostic]:
    if not endpoint.options.roles:
        message = "everybody could act as everybody, so nobody may; authorize has to list the roles or users that may"
        yield Diagnostic(endpoint.routine.identity, used["impersonate"], message)


CHECKS: tuple[Check, ...] = (
    _volatile_get,
    _impossible_path,
    _unbound_segments,
    _name_clashes,
    _repeated_members,
    _doubts_of_file,
    _placeholders,
    _shared_answers,
    _expressions,
    _never_on_a_replica,
)
OF_ANNOTATIONS: Mapping[str, Check] = {
    "body_parameter_name": _raw_body,
    "request_headers_parameter_name": _headers_parameter,
    "openapi": _examples,
    "raw": _raw_in_vain,
    "hedge": _hedged_for_nothing,
    "encrypt": _sent_on_as_it_came,
    "login": _signing_in_vain,
    "logout": _signing_in_vain,
    "impersonate": _nobody_may_act,
    "status": _status_without_effect,
}
"""By the names of the annotations."""
