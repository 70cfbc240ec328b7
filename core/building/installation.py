"""Annotations that need the schema `rowcall` in the database (`rowcall --install`).

An endpoint that promises more than it can keep without the schema is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.tables.routines import TableOperation

NEEDED = {"idempotent": 1, "job": 2}
"""Version of the schema that each annotation needs."""
_READING = ("GET", "HEAD", "QUERY")


def unmet_installation(
    endpoint: Endpoint, installed: int, used: Mapping[str, str], *, jobs: bool
) -> Iterator[Diagnostic]:
    """Report annotations without effect, and those whose schema is missing. installed: version of the schema. jobs:
    they are accepted.
    """
    identity, source = endpoint.routine.identity, endpoint.routine.source
    for annotation, obstacle in (("idempotent", runs_without_key(endpoint)), ("job", runs_at_once(endpoint))):
        line = used.get(annotation)
        if line is None:
            continue
        if obstacle is not None:
            # The comment of a table applies to all its operations.
            if not isinstance(source, TableOperation) or source.writes:
                yield Diagnostic(identity, line, f"{endpoint.name}: {annotation} has no effect: {obstacle}")
        elif endpoint.options.connection is not None:
            message = f"{annotation} needs the main connection, where it is stored; the endpoint is left out"
            yield Diagnostic(identity, line, f"{endpoint.name}: {message}", left_out=1)
        elif annotation == "job" and not jobs:
            message = "job is switched off (Jobs:Enabled); the endpoint is left out"
            yield Diagnostic(identity, line, f"{endpoint.name}: {message}", left_out=1)
        elif installed < NEEDED[annotation]:
            found = f"has version {installed}" if installed else "is not in the database"
            message = f"{annotation} needs the schema rowcall, which {found}: run rowcall --install"
            yield Diagnostic(identity, line, f"{endpoint.name}: {message}; the endpoint is left out", left_out=1)


def runs_at_once(endpoint: Endpoint) -> str | None:
    """Return why the routine of an endpoint cannot run later as a job; None if it can."""
    options = endpoint.options
    if endpoint.method in _READING:
        return f"a {endpoint.method} has to answer at once"
    if endpoint.routine.may_commit:
        return "a procedure that commits cannot be finished together with its job"
    if options.login or options.logout or options.upload is not None:
        return "sign-in, sign-out and uploads run at once"
    if endpoint.passes_through or options.proxy_out is not None:
        return "another service gives the response"
    return None


def runs_without_key(endpoint: Endpoint) -> str | None:
    """Return why requests of an endpoint cannot be recorded by their keys; None if they can."""
    options = endpoint.options
    if endpoint.method in _READING:
        return f"a {endpoint.method} only reads, so it can be repeated anyway"
    if options.login or options.logout:
        return "sign-in and sign-out are not recorded"
    if options.upload is not None:
        return "uploads are not recorded"
    if endpoint.passes_through or options.proxy_out is not None:
        return "another service gives the response"
    if options.caching is not None:
        return "its responses are cached"
    return None
