"""The statements in front of a call in its transaction: time limit, settings and commands of its preamble."""

from __future__ import annotations

import asyncio

from rowcall.service.database.call import Call
from rowcall.service.database.connector import SESSION, statement_timeout
from rowcall.service.database.preamble import PrecedingStatements, Values, preceding_settings
from rowcall.service.database.session.resets import DISCARD_SEQUENCES
from rowcall.service.request_context.request_context import RequestContext

# Behind a transaction pooler sessions are not ours, so settings that the text form of values depends on are sent with
# each request.
POOLED_SETTINGS: Values = [
    part.encode() for name, value in SESSION.items() if not name.startswith("tcp_") for part in (name, value)
]


class CallSettings:
    """Computes the time limits of the calls of one database, and the statements in front of each call. timeout: seconds
    that the server may take for a call without a limit of its own; 0: no limit. pooler: a transaction pooler is between
    service and server.
    """

    def __init__(self, timeout: float, *, pooler: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._pooler = pooler

    def timeout(self, call: Call) -> float:
        """Return the seconds that the server may take for the call; 0: no limit."""
        return self._timeout if call.timeout is None else call.timeout

    def limit(self, call: Call, context: RequestContext) -> float:
        """Return the seconds that the server may take for one execution of the call: those of `timeout`, or fewer if
        the deadline of the request is earlier; 0: no limit."""
        seconds = self.timeout(call)
        if not context.deadline:
            return seconds
        remaining = max(0.001, context.deadline - self._loop.time())
        return min(seconds, remaining) if seconds > 0 else remaining

    def values(self, call: Call, *, watched: bool, seconds: float) -> Values:
        """Return the transaction-local settings for one execution of the call, names and values in turn; empty if the
        values of the session apply.

        watched: the watchdog checks the progress of the result, so the server has no time limit. seconds: time limit
        for the server otherwise.
        """
        if not watched and not self._pooler and seconds == self._timeout:
            return []
        # A large result may take as long as its client reads, so the watchdog checks for progress instead.
        settings = timeout_setting(0.0 if watched else seconds)
        return settings + POOLED_SETTINGS if self._pooler else settings

    def preceding_statements(
        self, call: Call, context: RequestContext, *, watched: bool, seconds: float
    ) -> PrecedingStatements:
        """Return the statements for the settings of `values` and for the preamble of the call. watched, seconds: as for
        `values`.
        """
        settings = self.values(call, watched=watched, seconds=seconds)
        if call.preamble is None:
            return preceding_settings(settings)
        return call.preamble.preceding_statements(context, settings)

    def dedicated_preceding_statements(
        self, call: Call, context: RequestContext, *, watched: bool, seconds: float
    ) -> PrecedingStatements:
        """Return the statements in front of a call in its segment on a dedicated connection: those of
        `preceding_statements`, and before them, without a pooler, that of `discard_of_sequences`. watched, seconds: as
        for `values`.

        For a procedure that may commit, statements in its segment would prevent the commit. So nothing is sent, and its
        settings and commands are set for the session before (`DedicatedRuns._prepare_procedure`). If one of its
        commands has no session-level form, all commands are sent in the segment, and the procedure cannot commit.
        Behind a pooler, which allows nothing for the session, the preamble of any procedure is sent in the segment,
        without the settings of `values`.
        """
        preamble = call.preamble
        if not call.procedure or (call.wrapped and not self._pooler):
            others = self.preceding_statements(call, context, watched=watched, seconds=seconds)
            return others if self._pooler else discard_of_sequences(call) + others
        if preamble is None:
            return ()
        if self._pooler:
            return preamble.preceding_statements(context, [])
        return () if preamble.lasts else preamble.preceding_commands(context)


def discard_of_sequences(call: Call) -> PrecedingStatements:
    """Return the statement that discards cached values of sequences, if the routine reads them; else nothing."""
    return ((DISCARD_SEQUENCES, []),) if call.session.reads_sequences else ()


def timeout_setting(seconds: float) -> Values:
    """Return name and value of the setting for the time limit of a statement. 0: no limit."""
    return [b"statement_timeout", statement_timeout(seconds).encode()]
