"""What a request runs, as it is logged: its URL, its values, its SQL (logging-8).

One description serves two places: each command at level Debug, and the failed ones with their error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from rowcall.core.auth.parameter_injection import hashed_parameters
from rowcall.core.cache.key import hashed
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ValueKind
from rowcall.core.sqlfile.source import FileSource
from rowcall.service.database.call import Call, Describe
from rowcall.service.encryption.parameters import sealed_parameters
from rowcall.service.log.entry import one_line
from rowcall.service.log.request_log import request_properties
from rowcall.service.request_context.redaction import HIDDEN
from rowcall.service.request_context.request_context import RequestContext, Step

if TYPE_CHECKING:
    from rowcall.service.options.worker import WorkerOptions

log = logging.getLogger("rowcall.commands")

_BARE = frozenset(
    {ValueKind.SMALLINT, ValueKind.INTEGER, ValueKind.BIGINT, ValueKind.FLOAT, ValueKind.NUMERIC, ValueKind.BOOLEAN}
)


def log_command(call: Call, endpoint: Endpoint, options: WorkerOptions, note: str = "") -> Step | None:
    """The step in front of a call that logs it. None where nobody would see it. note: one more line, about a call that
    is not made: its values are still as they came.
    """
    describe = description(endpoint, options, sealed=False) if note else call.describe
    if describe is None or not log.isEnabledFor(logging.DEBUG):
        return None

    script = _script_text(endpoint, options)

    def log_it(context: RequestContext) -> None:
        text = call.statement(context.mask).sql.decode() if script is None else script
        properties = request_properties(context.protocol)
        message = (call.label, describe(context), text, note and f"\n{note}")
        log.debug("%s:\n%s\n%s%s", *message, extra={"properties": properties})

    return log_it


def log_cached_forward(endpoint: Endpoint, options: WorkerOptions) -> Step | None:
    """Of an answer that another service gave, and that is given again (caching-22)."""
    tell = _status_reporter(endpoint, options)
    return None if tell is None else lambda context: tell(context, "/* proxy response from cache */")


def log_invalidation(
    endpoint: Endpoint, options: WorkerOptions
) -> Callable[[RequestContext, bool, bytes | None], None] | None:
    """Whether an answer was found, and its key: as a hash where values are not logged (caching-22)."""
    tell = _status_reporter(endpoint, options)
    if tell is None:
        return None
    plain = options.log_command_parameters and not _secret_parameters(endpoint, sealed=False)

    def log_it(context: RequestContext, found: bool, key: bytes | None) -> None:
        word = "removed" if found else "not found"
        shown = "-" if key is None else one_line((key if plain else hashed(key)).decode(errors="backslashreplace"))
        tell(context, f"/* cache invalidation: {word} */ {shown}")

    return log_it


def _status_reporter(endpoint: Endpoint, options: WorkerOptions) -> Callable[[RequestContext, str], None] | None:
    """For requests that run nothing."""
    describe = description(endpoint, options, sealed=False)
    if describe is None or not log.isEnabledFor(logging.DEBUG):
        return None
    return lambda context, note: log.debug("%s:\n%s\n%s", endpoint.name, describe(context), note)


def _script_text(endpoint: Endpoint, options: WorkerOptions) -> str | None:
    """Of a file with several statements; None for everything else. Such files may be long."""
    source = endpoint.routine.source
    if not isinstance(source, FileSource) or not source.several:
        return None
    if options.log_file_texts:
        return ";\n".join(statement.text for statement in source.statements)
    return f"-- {source.file}: {len(source.statements)} statements"


def description(endpoint: Endpoint, options: WorkerOptions, *, sealed: bool = True) -> Describe | None:
    """How requests of this endpoint are told in the log. None: they are not. sealed: what it encrypts is told when that
    has been done, so that the log shows what the database gets.
    """
    if not options.log_commands:
        return None
    secret = _secret_parameters(endpoint, sealed=sealed)
    instead = endpoint.path if endpoint.redacted else None
    resolved = {name for name, _ in endpoint.options.expressions}

    def describe(context: RequestContext) -> str:
        lines = [f"-- {one_line(context.scope.method)} {_url(context, instead)}"]
        if options.log_command_parameters:
            lines += _values(context, endpoint, resolved, secret)
        return "\n".join(lines)

    return describe


def _secret_parameters(endpoint: Endpoint, *, sealed: bool) -> frozenset[int]:
    """Indexes of those whose values are nobody's business: all of a sensitive endpoint, else passwords and hashes, and
    what is not encrypted yet.
    """
    if endpoint.options.sensitive:
        return frozenset(range(len(endpoint.parameters)))
    hashes = frozenset(index for pair in hashed_parameters(endpoint) for index in pair)
    return hashes if sealed else hashes.union(sealed_parameters(endpoint))


def _url(context: RequestContext, instead: str | None) -> str:
    """The whole URL. instead: a path that stands for the real one and its query, which hold values."""
    scope = context.scope
    query = f"?{scope.query_string}" if scope.query_string and instead is None else ""
    host = scope.headers.get("host") or scope.authority or scope.server
    return one_line(f"{scope.scheme}://{host}{instead or scope.path}{query}")


def _values(context: RequestContext, endpoint: Endpoint, resolved: set[str], secret: frozenset[int]) -> list[str]:
    """One line for each bound parameter: `-- $1 integer = 5`."""
    present = [(index, item) for index, item in enumerate(endpoint.parameters) if context.mask >> index & 1]
    return [
        f"-- ${number} {parameter.cast} = {HIDDEN if index in secret else _shown(parameter, value, resolved)}"
        for number, ((index, parameter), value) in enumerate(zip(present, context.arguments, strict=False), 1)
    ]


def _shown(parameter: EndpointParameter, value: bytes | None, resolved: set[str]) -> str:
    if parameter.db_name in resolved:
        return "(resolved)"
    if value is None:
        return "null"
    text = one_line(value.decode(errors="replace"))
    return text if parameter.kind in _BARE and not parameter.array else f"'{text}'"
