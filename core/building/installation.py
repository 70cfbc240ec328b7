"""Annotations that need the schema `rowcall` in the database (`rowcall --install`).

An endpoint that promises more than it can keep without the schema is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.tables.routines import TableOperation

NEEDED = {"idempotent": 1}
"""Version of the schema that each annotation needs."""


def unmet_installation(endpoint: Endpoint, installed: int, used: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Report annotations without effect, and those whose schema is missing. installed: version of the schema."""
    line = used.get("idempotent")
    if line is None:
        return
    identity, source = endpoint.routine.identity, endpoint.routine.source
    reason = runs_without_key(endpoint)
    if reason is not None:
        # The comment of a table applies to all its operations.
        if not isinstance(source, TableOperation) or source.writes:
            yield Diagnostic(identity, line, f"{endpoint.name}: idempotent has no effect: {reason}")
    elif endpoint.options.connection is not None:
        message = "idempotent needs the main connection, where keys are stored; the endpoint is left out"
        yield Diagnostic(identity, line, f"{endpoint.name}: {message}", left_out=1)
    elif installed < NEEDED["idempotent"]:
        found = f"has version {installed}" if installed else "is not in the database"
        message = f"idempotent needs the schema rowcall, which {found}: run rowcall --install; the endpoint is left out"
        yield Diagnostic(identity, line, f"{endpoint.name}: {message}", left_out=1)


def runs_without_key(endpoint: Endpoint) -> str | None:
    """Return why requests of an endpoint cannot be recorded by their keys; None if they can."""
    options = endpoint.options
    if endpoint.method in ("GET", "HEAD", "QUERY"):
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
