"""Descriptions of requests for the log: URL, values and SQL (logging-8).

They are used for each command at level Debug, and for failed commands with their error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from rowcall.core.auth.parameter_injection import hashed_parameters
from rowcall.core.cache.key import hash_key
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ValueKind
from rowcall.core.http.forwarded_headers import Client
from rowcall.core.protection.encrypted_parameters import encrypted_parameters
from rowcall.core.sqlfile.source import FileSource
from rowcall.service.database.call import Call, Describe
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.request_context.client_address import client_reader
from rowcall.service.request_context.redaction import HIDDEN
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.trace import request_properties

if TYPE_CHECKING:
    from rowcall.service.options.worker import WorkerOptions

log = logging.getLogger("rowcall.commands")

_BARE = frozenset(
    {ValueKind.SMALLINT, ValueKind.INTEGER, ValueKind.BIGINT, ValueKind.FLOAT, ValueKind.NUMERIC, ValueKind.BOOLEAN}
)
"""Kinds of values that are logged without quotes."""


def log_command(call: Call, endpoint: Endpoint, options: WorkerOptions, note: str = "") -> Step | None:
    """Return the step that logs a call before it runs, or None if nothing would be logged. note: line to append if the
    call is not made, as with a cached response; empty: the call is made."""
    describe = call.describe
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
    """Return a step that logs the use of a cached proxy response (caching-22); None: it is not logged."""
    report = _note_logger(endpoint, options)
    return None if report is None else lambda context: report(context, "/* proxy response from cache */")


def log_invalidation(
    endpoint: Endpoint, options: WorkerOptions
) -> Callable[[RequestContext, bool, bytes | None], None] | None:
    """Return a function that logs an invalidation; None: it is not logged. Its parameters: request context, whether a
    cached response was removed, and the cache key (None: unknown), which is logged as a hash if values are not logged
    (caching-22).
    """
    report = _note_logger(endpoint, options)
    if report is None:
        return None
    plain = options.log_command_parameters and not _secret_parameters(endpoint) and not encrypted_parameters(endpoint)

    def log_it(context: RequestContext, was_cached: bool, key: bytes | None) -> None:
        word = "removed" if was_cached else "not found"
        key_text = (
            "-"
            if key is None
            else escape_unprintable((key if plain else hash_key(key)).decode(errors="backslashreplace"))
        )
        report(context, f"/* cache invalidation: {word} */ {key_text}")

    return log_it


def _note_logger(endpoint: Endpoint, options: WorkerOptions) -> Callable[[RequestContext, str], None] | None:
    """Return a function that logs a request which runs no SQL, with a note; None if nothing would be logged."""
    describe = description(endpoint, options)
    if describe is None or not log.isEnabledFor(logging.DEBUG):
        return None
    return lambda context, note: log.debug("%s:\n%s\n%s", endpoint.name, describe(context), note)


def _script_text(endpoint: Endpoint, options: WorkerOptions) -> str | None:
    """Return what is logged in place of the SQL of a file with several statements: its text, or if texts of files are
    not logged, its name and number of statements. None for every other source.
    """
    source = endpoint.routine.source
    if not isinstance(source, FileSource) or not source.several:
        return None
    if options.log_file_texts:
        return ";\n".join(statement.text for statement in source.statements)
    return f"-- {source.file}: {len(source.statements)} statements"


def description(endpoint: Endpoint, options: WorkerOptions) -> Describe | None:
    """Return the function that describes requests of this endpoint for the log, or None if they are not logged. It is
    called after encryption, so that the log shows the values that the database receives.
    """
    if not options.log_commands:
        return None
    secret = _secret_parameters(endpoint)
    instead = endpoint.path if endpoint.redacted else None
    client_of = client_reader(options.forwarding)
    resolved = {name for name, _ in endpoint.options.expressions}

    def describe(context: RequestContext) -> str:
        lines = [f"-- {escape_unprintable(context.scope.method)} {_url(context, client_of(context.scope), instead)}"]
        if options.log_command_parameters:
            lines += _values(context, endpoint, resolved, secret)
        return "\n".join(lines)

    return describe


def _secret_parameters(endpoint: Endpoint) -> frozenset[int]:
    """Return the indexes of parameters whose values are not logged: all of a sensitive endpoint; else passwords and
    their hashes."""
    if endpoint.options.sensitive:
        return frozenset(range(len(endpoint.parameters)))
    return frozenset(index for pair in hashed_parameters(endpoint) for index in pair)


def _url(context: RequestContext, client: Client, instead: str | None) -> str:
    """Return the whole URL of a request as its client has sent it, on one line. instead: a path that replaces the real
    one and its query, because these contain values; None: they are shown.
    """
    scope = context.scope
    query = f"?{scope.query_string}" if scope.query_string and instead is None else ""
    host = client.host or scope.headers.get("host") or scope.authority or scope.server
    return escape_unprintable(f"{client.scheme}://{host}{instead or scope.path}{query}")


def _values(context: RequestContext, endpoint: Endpoint, resolved: set[str], secret: frozenset[int]) -> list[str]:
    """Return one line for each bound parameter: `-- $1 integer = 5`. resolved: names of parameters whose values SQL
    computes. secret: indexes of parameters whose values are not shown.
    """
    present = [(index, item) for index, item in enumerate(endpoint.parameters) if context.mask >> index & 1]
    return [
        f"-- ${number} {parameter.cast} = {HIDDEN if index in secret else _format_value(parameter, value, resolved)}"
        for number, ((index, parameter), value) in enumerate(zip(present, context.arguments, strict=False), 1)
    ]


def _format_value(parameter: EndpointParameter, value: bytes | None, resolved: set[str]) -> str:
    """Return the value as it is logged: a number or boolean plainly, other values between quotes (quotes within them
    are not doubled), `null` for None, or a mark for a value that SQL computes. resolved: as for `_values`."""
    if parameter.db_name in resolved:
        return "(resolved)"
    if value is None:
        return "null"
    text = escape_unprintable(value.decode(errors="replace"))
    return text if parameter.kind in _BARE and not parameter.array else f"'{text}'"
