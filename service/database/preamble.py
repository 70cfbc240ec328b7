"""Preambles: settings and commands that a request sends to the server in front of its call.

A capability declares its part at compile time, with a factory in `service.handler.endpoint_call.PREAMBLE`:

    def client_address(endpoint: Endpoint, services: Services) -> Preamble | None:
        if not endpoint.options.user_context:
            return None
        name = b"request.ip_address"
        return Preamble(settings=(lambda context: (name, context.scope.client.encode()),))

Each source of settings is called once for each run, when the arguments are bound, and returns names and values in turn:
`(name, value, name, value, ...)`. None as a value reads back as an empty text, the only form that PostgreSQL has for
it; a name that is left out is not touched. A source must return the same for the same request context, as a call whose
connection was lost runs again; values that have to be awaited are computed by an earlier step.

All settings of a request go to the server in one prepared statement, with values and names as its parameters, in the
same segment and so in the same transaction as the call; behind them the commands in their order, then the call. They
end with that transaction, on pipelined and dedicated connections, whatever the call did. If one of them fails, the call
does not run, and `Execution.failed_ahead` is set. An endpoint without a preamble has no cost for it.

A procedure may commit, which would end a transaction-local setting, and could not commit if anything were in front of
it in its segment. Its settings are therefore set for the session, in a segment before, and reset behind the call. The
same applies to its commands, if a session-level form is known (`core.endpoint.before_routine`): older servers let a
procedure commit with statements in front of it, and it would continue as another user. For a command without a known
session-level form, a procedure that may commit is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rowcall.ext.driver.execution import Statement
from rowcall.service.database.statements import settings_statement
from rowcall.service.request_context.request_context import RequestContext

Values = list[bytes | None]
"""Texts for the parameters of a statement; None is NULL."""
PrecedingStatements = tuple[tuple[Statement, Values], ...]
"""Statements that run in front of a call in its segment, in this order, with their values."""

Source = Callable[[RequestContext], Sequence[bytes | None]]
"""Returns names and values in turn."""


@dataclass(frozen=True, slots=True)
class Command:
    """An SQL command that runs before the call.

    statement: from `statements.statement_for`. values: texts for its `$n`. has_no_session_effects: all effects end with
    the transaction. A call with a command that may have session effects runs in the dedicated pool.
    """

    statement: Statement
    values: Callable[[RequestContext], Values]
    has_no_session_effects: bool = False
    lasting: Statement | None = None
    """Statement with the same effect until the session is reset, with the same values. None: not known."""


@dataclass(frozen=True, slots=True)
class Preamble:
    """The settings and commands of the requests of one endpoint. An empty one is false."""

    settings: tuple[Source, ...] = ()
    commands: tuple[Command, ...] = ()

    def __add__(self, other: Preamble) -> Preamble:
        return Preamble(self.settings + other.settings, self.commands + other.commands)

    def __bool__(self) -> bool:
        return bool(self.settings or self.commands)

    @property
    def has_no_session_effects(self) -> bool:
        """Whether no command has session effects."""
        return all(command.has_no_session_effects for command in self.commands)

    @property
    def lasts(self) -> bool:
        """Whether all commands have a form that outlives a transaction."""
        return all(command.lasting is not None for command in self.commands)

    def lasting_commands(self, context: RequestContext) -> PrecedingStatements:
        """Return the commands in the form whose effects outlive a transaction (`lasting`). Commands without that form
        are left out.
        """
        return tuple(
            (command.lasting, command.values(context)) for command in self.commands if command.lasting is not None
        )

    def setting_values(self, context: RequestContext) -> Values:
        """Return names and values in turn, from all sources."""
        return self._add_setting_values([], context)

    def preceding_statements(self, context: RequestContext, others: Values) -> PrecedingStatements:
        """Return all statements in front of a call, for one transaction: one that sets all settings, then the commands.

        others: further settings of the call, names and values in turn; they are set before those of the preamble.
        """
        settings = preceding_settings(self._add_setting_values(others, context))
        return settings + self.preceding_commands(context) if self.commands else settings

    def _add_setting_values(self, others: Values, context: RequestContext) -> Values:
        """Return `others`, followed by names and values of all sources."""
        for source in self.settings:
            result = source(context)
            others = [*others, *result] if others else list(result)
        return others

    def preceding_commands(self, context: RequestContext) -> PrecedingStatements:
        """Return the commands in the form whose effects end with the transaction."""
        return tuple((command.statement, command.values(context)) for command in self.commands)


def preceding_settings(settings: Values) -> PrecedingStatements:
    """Return transaction-local settings as the statement in front of a call; empty if there are none. settings: names
    and values in turn.
    """
    return ((settings_statement(len(settings) // 2), settings),) if settings else ()
