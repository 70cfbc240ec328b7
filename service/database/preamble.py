"""What a request brings along for its routine besides arguments: settings, and commands that run before the call.

A capability declares it at compile time, with a factory in `service.handler.step_order.CONTEXT`:

    def client_address(endpoint: Endpoint, services: Services) -> Context | None:
        if not endpoint.options.user_context:
            return None
        name = b"request.ip_address"
        return Context(settings=(lambda exchange: (name, exchange.scope.client.encode()),))

Each source of settings is asked once for each run, when the arguments are bound, and gives names and values in turn:
`(name, value, name, value, ...)`. None as a value reads back as an empty text, which is all that PostgreSQL can do; a
name that is left out is not touched. A source has to give the same for the same exchange, as a call whose connection
was lost runs again; what has to be waited for is worked out by a step before.

All settings of a request go to the server in one prepared statement, values and names as its parameters, in the same
segment and so in the same transaction as the call; behind them the commands in their order, then the call. They are
gone when that transaction ends, on connections that are shared and on others, whatever the call did. If one of them
fails, the call does not run, and `Request.failed_ahead` tells. An endpoint without any pays nothing.

A procedure may commit, which would end a transaction-local setting, and could not if anything stood in front of it in
its segment. Its settings are therefore set for the session, in a segment before, and reset behind the call. So are its
commands, where it is known how (`core.endpoint.before_routine`): older servers let a procedure commit whatever stands
in front of it, and it would go on as somebody else. Of a command that nobody can tell, a procedure that may commit is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rowcall.ext.driver.execution import Statement
from rowcall.service.database.statements import settings_statement
from rowcall.service.request_context.request_context import RequestContext

Values = list[bytes | None]
Ahead = tuple[tuple[Statement, Values], ...]
"""Statements in front of a call, with their values."""

Source = Callable[[RequestContext], Sequence[bytes | None]]
"""Names and values in turn."""


@dataclass(frozen=True, slots=True)
class Command:
    """SQL that runs before the call.

    statement: from `statements.statement_for`. values: texts for its `$n`. leaves_nothing: all it does ends with the
    transaction. One that may do anything else gives its call a connection of its own.
    """

    statement: Statement
    values: Callable[[RequestContext], Values]
    has_no_session_effects: bool = False
    lasting: Statement | None = None
    """What has the same effect until the session is reset, with the same values. None: not known."""


@dataclass(frozen=True, slots=True)
class Preamble:
    settings: tuple[Source, ...] = ()
    commands: tuple[Command, ...] = ()

    def __add__(self, other: Preamble) -> Preamble:
        return Preamble(self.settings + other.settings, self.commands + other.commands)

    def __bool__(self) -> bool:
        return bool(self.settings or self.commands)

    @property
    def has_no_session_effects(self) -> bool:
        """The session is afterwards what it was."""
        return all(command.has_no_session_effects for command in self.commands)

    @property
    def lasts(self) -> bool:
        """All of it can be made to outlive a transaction."""
        return all(command.lasting is not None for command in self.commands)

    def lasting_ahead(self, context: RequestContext) -> Ahead:
        """The commands, for the session."""
        return tuple(
            (command.lasting, command.values(context)) for command in self.commands if command.lasting is not None
        )

    def setting_values(self, context: RequestContext) -> Values:
        """Names and values in turn, those of all sources."""
        return self._behind([], context)

    def ahead(self, context: RequestContext, others: Values) -> Ahead:
        """Everything in front of a call. others: settings that it needs besides, names and values in turn."""
        settings = self._behind(others, context)
        return ahead_of(settings) + self.commands_ahead(context) if self.commands else ahead_of(settings)

    def _behind(self, others: Values, context: RequestContext) -> Values:
        for source in self.settings:
            result = source(context)
            others = [*others, *result] if others else list(result)
        return others

    def commands_ahead(self, context: RequestContext) -> Ahead:
        return tuple((command.statement, command.values(context)) for command in self.commands)


def ahead_of(settings: Values) -> Ahead:
    """Settings that end with the transaction, as the statement in front of a call."""
    return ((settings_statement(len(settings) // 2), settings),) if settings else ()
