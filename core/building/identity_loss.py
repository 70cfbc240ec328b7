"""Finds procedures that may commit and would lose the caller's role or tenant with it, before a request calls them.

`service.handler.step_order.refuse_loss_of_identity` checks the same for each request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rowcall.core.auth.commands import number_placeholders
from rowcall.core.catalogue.catalog import Routine, RoutineKind
from rowcall.core.endpoint.before_routine import BeforeCommand, for_the_session, use_claims
from rowcall.core.endpoint.endpoint import Endpoint, HeadersMode
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.sqlfile.source import FileSource


@dataclass(frozen=True, slots=True)
class CallSurroundings:
    """Facts about the settings that the configuration makes before every call.

    has_settings: the configuration makes such settings. ends_with_transaction: one of its commands cannot be changed
    so that its settings last as long as the session (`for_the_session`); they are lost when a procedure commits.
    pooled: connections lead to a transaction pooler, so that all settings end with the transaction. uses_claims: one of
    its commands gets a claim of the caller, so that every response may depend on it.
    """

    has_settings: bool = False
    ends_with_transaction: bool = False
    pooled: bool = False
    uses_claims: bool = False

    @classmethod
    def of(cls, commands: Sequence[BeforeCommand], *, others: bool, pooled: bool) -> CallSurroundings:
        """Return the facts about these commands. others: there are settings besides the commands. pooled:
        connections lead to a transaction pooler."""
        ends_with_transaction = any(
            for_the_session(number_placeholders(command.sql, {})[0]) is None for command in commands
        )
        return cls(bool(commands) or others, ends_with_transaction, pooled, use_claims(commands))


def identity_loss(endpoint: Endpoint, around: CallSurroundings) -> Iterator[Diagnostic]:
    """Yield a diagnostic for a procedure that may commit and would lose the settings of its call; the endpoint is left
    out."""
    options = endpoint.options
    has_settings = around.has_settings or options.user_context or options.request_headers is HeadersMode.CONTEXT
    if not has_settings or not _may_commit(endpoint.routine) or not (around.pooled or around.ends_with_transaction):
        return
    why = (
        "behind a transaction pooler the settings before the call would end there"
        if around.pooled
        else "a setting of Service:BeforeRoutineCommands would end there: write it as SET or select set_config(…)"
    )
    message = f"{endpoint.name} is left out, because it may commit, and {why}"
    yield Diagnostic(endpoint.routine.identity, None, message, left_out=1)


def _may_commit(routine: Routine) -> bool:
    """Return whether the routine or file runs outside of a transaction of the service, so that it may commit."""
    source = routine.source
    if isinstance(source, FileSource):
        return source.stands_alone
    return routine.kind is RoutineKind.PROCEDURE and routine.may_commit
