"""Checks of endpoints with one-time tokens and mail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.errors.diagnostics import Diagnostic

READING = ("GET", "HEAD", "QUERY")


def runs_with_account_steps(endpoint: Endpoint) -> bool:
    """Return whether the routine consumes or issues tokens, or sends mail."""
    options = endpoint.options
    return options.consumed_token is not None or options.issued_token is not None or options.mail is not None


def gives_rows_to_account_steps(endpoint: Endpoint) -> bool:
    """Return whether the rows of the routine get tokens or become mail. If so, the call has to render `CellRows`."""
    return endpoint.options.issued_token is not None or endpoint.options.mail is not None


def token_parameter(endpoint: Endpoint) -> int | None:
    """Return the index of the parameter that `consume_token` names, in any case: by its database name, which may have
    an additional `_` in front, or by its name in requests. None: there is no such annotation, or no such parameter."""
    consumed = endpoint.options.consumed_token
    if consumed is None:
        return None
    name = consumed.parameter.lower()
    names = (name, f"_{name}")
    return next(
        (
            index
            for index, item in enumerate(endpoint.parameters)
            if item.db_name.lower() in names or item.api_name.lower() == name
        ),
        None,
    )


def account_diagnostics(endpoint: Endpoint, used: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic with the reason for each of `issue_token`, `consume_token` and `send_mail` that the comment
    has and that is not possible for the endpoint. Each of these diagnostics leaves the endpoint out.

    used: name of each applied annotation → its comment line.
    """
    for annotation in ("issue_token", "consume_token", "send_mail"):
        line = used.get(annotation)
        reason = None if line is None else _obstacle(endpoint, annotation, used)
        if reason is not None:
            message = f"{endpoint.name}: {annotation} is not possible: {reason}; the endpoint is left out"
            yield Diagnostic(endpoint.routine.identity, line, message, left_out=1)


def _obstacle(endpoint: Endpoint, annotation: str, used: Mapping[str, str]) -> str | None:
    options = endpoint.options
    if endpoint.method in READING:
        return f"a {endpoint.method} must not change anything, and mail programs follow links; use POST"
    if endpoint.routine.may_commit:
        return "it may commit, which ends the transaction"
    if endpoint.passes_through or options.proxy_out is not None or options.upload is not None:
        return "it is no plain call of a routine"
    if options.role_from_claim:
        return "it runs as the role that a claim names, which must not have the rights for tokens and mail"
    other = next((name for name in _NOT_WITH if name in used), None)
    if other is not None:
        return f"it cannot be combined with {other}"
    if annotation == "consume_token":
        if token_parameter(endpoint) is None:
            parameter = options.consumed_token.parameter if options.consumed_token else "token"
            return f"there is no parameter {parameter}"
        return None
    if options.login or options.logout:
        return "it signs in or out"
    if endpoint.shape.path is not ResultPath.ROWS or not endpoint.shape.named:
        return "its result has no columns"
    columns = {column.column.name.lower() for column in endpoint.shape.columns}
    if annotation == "send_mail" and "to" not in columns:
        return "its result has no column to"
    issued = options.issued_token
    if annotation == "issue_token" and issued is not None and issued.subject.lower() not in columns:
        return f"its result has no column {issued.subject}"
    return None


_NOT_WITH = (
    "cached",
    "download",
    "etag",
    "idempotent",
    "job",
    "mcp",
    "nested_json",
    "publishes",
    "queryable",
    "raw",
    "response_headers_column",
    "response_status_column",
    "schedule",
    "sse",
    "table_format",
    "verify_webhook",
    "version_column",
    "void",
)
