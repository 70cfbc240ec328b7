"""What follows a run that failed: another one, at once or after a pause, or the `Problem` that the client gets.

Two reasons for another run. The connection or the prepared statement was at fault, and nothing of the call has
happened: it is repeated silently and at once (driver-25 to driver-28). Or the error is one that passes by
itself, and the endpoint's strategy lists it: it is retried after the strategy's delays (execution-13, execution-14).
Neither
repeats what may have taken effect.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from rowcall.core.binding.server_refusals import refused_argument
from rowcall.core.catalogue.session_effects import guard_failed
from rowcall.core.errors.binding_error import BindingError
from rowcall.core.errors.error_policy import QUERY_CANCELED, DatabaseError
from rowcall.core.errors.problems import Problem, unavailable, unbound
from rowcall.ext.driver.execution import Execution, Loss, Script, ServerError
from rowcall.ext.rendering.body_writer import ColumnsChangedError
from rowcall.service.database.call import Call
from rowcall.service.request_context.deadline import DeadlineError
from rowcall.service.request_context.redaction import hide_values
from rowcall.service.request_context.request_context import RequestContext

log = logging.getLogger("rowcall.database")

# Errors that say "the prepared statement no longer fits the schema", raised before anything of the call ran.
NO_SCHEMA = "3F000"
NAMED = frozenset({"42883", "42703", "42P01", "42704"})
STALE = frozenset({"0A000", "26000", "42804", NO_SCHEMA, *NAMED})
_QUOTED = re.compile(r'"([^"]+)"')

INTERNAL = "XX000"
_LOOKUP_FAILED = re.compile(r"(cache lookup failed for|could not open relation with OID|could not find tuple for) ")
"""Start of the messages of PostgreSQL for an object that was dropped between two lookups. They are never translated."""

NOT_NULL = "23502"
COMPUTED = "428C9"
"""A value for a generated column, or for an identity that is always generated."""

_PERMANENT = frozenset({"error_view_not_updatable", "RewriteQuery", "rewriteTargetView", "lastval", "currval_oid"})
"""Functions of PostgreSQL that report 55000 for a state that a retry does not change: a view that cannot be written,
and a sequence that the session has not used."""

RAISE = "exec_stmt_raise"
"""The function of PostgreSQL that reports what PL/pgSQL raises."""

UNKNOWN_OUTCOME = "it is not known whether it took effect"
OUT_OF_TIME = "the database has not answered in time"
CLOCKS_DIFFER = 0.5
"""Seconds by which our clock may have started after the server's: the head of a shared connection is found late."""


@dataclass(slots=True)
class AttemptState:
    """How often one request has run in vain."""

    repeats: int = 0
    retries: int = 0
    """Runs that the endpoint's strategy has granted so far."""
    trips: int = 0
    """Runs that were refused because something that the statement rests on has changed."""
    began: float = 0.0
    """When the time of the request began to count; each attempt of a strategy has a time of its own."""


class CallTimeoutError(Exception):
    """The limit of a request is over, counted from its beginning, and the server has not said anything."""


GIVEN_TIME = 30.0
"""Seconds for which what no longer fits the schema is expected to fit again soon."""


class Changes:
    """Since when the statements of endpoints have not fitted the schema, by label."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[float, float]] = {}

    def is_new(self, label: str) -> bool:
        """Whether a reading of the catalogue may still mend it. One that has passed for a while begins anew."""
        now = time.monotonic()
        first, last = self._since.get(label, (now, now))
        if now - last > 2 * GIVEN_TIME:
            first = now
        if label not in self._since and len(self._since) >= MOST_LABELS:
            self._since.clear()
        self._since[label] = (first, now)
        return now - first < GIVEN_TIME


MOST_LABELS = 10_000


class Failures:
    """Judges the failed runs of one database.

    connections: how many may have lost a statement before one is found that still has it.
    """

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._changes = Changes()
        self.on_stale: Callable[[], None] | None = None

    def pause(self, call: Call, mask: int, execution: Execution, tries: AttemptState) -> float | None:
        """Seconds until `call` may run again; None: it may not."""
        if _guard_failed(execution):
            # Nothing of it has run, and the next run is one without a wire.
            tries.trips += 1
            call.trip(mask)
            return 0.0
        tries.repeats += 1
        if self._repeat(call, mask, execution, tries.repeats):
            return 0.0
        strategy = call.retry
        if strategy is None or not _passes(call, execution) or tries.retries >= len(strategy.delays):
            return None
        delay = strategy.delays[tries.retries]
        tries.retries += 1
        tries.began = 0.0
        log.warning(
            "%s: attempt %d failed (%s), the next one follows in %g s",
            call.label,
            tries.retries,
            _why(execution),
            delay,
        )
        return delay

    def _repeat(self, call: Call, mask: int, execution: Execution, repeats: int) -> bool:
        """May it run again without having run twice?"""
        if _is_over(execution):
            self._report_stale(execution)
            return False
        if execution.committed and not execution.statement.repeatable:
            self._report_stale(execution)
            return False
        if execution.loss == Loss.NOT_STARTED:
            return repeats <= 3
        if execution.loss == Loss.ROLLED_BACK:
            # More than once: where one backend was terminated, the next one may have been as well.
            return repeats <= 3 and not call.commits
        if execution.loss == Loss.IN_DOUBT:
            return repeats <= 1 and execution.statement.repeatable
        error = execution.error
        if _has_lost_statement(execution):
            # Gone from that connection, which closes; the statement itself is good. The next may have lost it too.
            return repeats <= 1 + self._connections
        if error is None or repeats > 1:
            self._report_stale(execution)
            return False
        if error.sqlstate in ("25P01", "25P02") and execution.connection is None:
            return True
        if error.sqlstate == "42P05" and not call.commits:
            # An earlier run has left it there, on a connection that closes now; this one has been rolled back.
            return True
        if _is_lookup_failure(execution):
            # The error has rolled back the transaction, unless the call commits on its own.
            call.trip(mask)
            return not call.commits
        return _renew_statement(call, mask, execution)

    def renew(self, call: Call, mask: int, execution: Execution) -> None:
        """After a run that no other may follow: a statement that no longer fits is made anew for the next request."""
        self._repeat(call, mask, execution, 1)

    def _report_stale(self, execution: Execution) -> None:
        if _is_stale(execution) or _is_lookup_failure(execution):
            self._report(str(execution.label))

    def _report(self, label: str) -> bool:
        """Has the catalogue read again, if there is a chance that this mends anything."""
        if self.on_stale is None or not self._changes.is_new(label):
            return False
        self.on_stale()
        return True

    def tell_broken(self, call: Call, context: RequestContext, execution: Execution) -> None:
        """An answer that has begun breaks off. The log is the only place that can say why."""
        if execution.succeeded or execution.abandoned:
            return
        log.error(
            "%s: the answer breaks off: %s%s", call.label, _why_broken(call, context, execution), _told(call, context)
        )

    def problem(
        self, call: Call, context: RequestContext, execution: Execution, tries: AttemptState | None = None
    ) -> Problem:
        """The answer for a run that is not followed by another one."""
        if isinstance(execution.failure, Problem):
            return execution.failure
        if _was_deadline(context, execution):
            return DeadlineError(context)
        if isinstance(execution.failure, CallTimeoutError):
            log.warning("%s: no answer within its limit of %g s", call.label, execution.timeout)
            late = call.policy.timeout.out_of_time()
            if not execution.statement.repeatable:
                # On a shared connection it may still have its turn.
                late.detail = f"{late.detail or OUT_OF_TIME}; {UNKNOWN_OUTCOME}"
            return late
        if execution.loss != Loss.NOT_LOST:
            return _lost(execution, committed=call.commits)
        if _is_over(execution) and _has_lost_statement(execution):
            # Nothing of it has run, and there was no time left to run it elsewhere.
            log.warning("%s: no answer within its limit of %g s", call.label, execution.timeout)
            return call.policy.timeout.out_of_time()
        if (
            call.existed
            and not execution.failed_ahead
            and (_is_stale(execution) or _is_lookup_failure(execution))
            and self._report(call.label)
        ):
            assert execution.error is not None  # noqa: S101 (which is what makes it stale)
            log.warning(
                "%s: %s: %s; the database has changed", call.label, execution.error.sqlstate, execution.error.message
            )
            return unavailable("the database has changed; what it has now is being read")
        if execution.error is not None:
            message = execution.error.message
            if call.sensitive:
                message = hide_values(message, context.arguments)
            problem = _refused_value(call, context, execution, message)
            problem = problem or _refused_column(call, context, execution, message, tries or AttemptState())
            text = _said(execution.error, message)
            log.log(level_of(problem.status), "%s: %s%s", call.label, text, _told(call, context))
            problem.logged = True
            return problem
        if isinstance(execution.failure, ColumnsChangedError):
            log.warning("%s: %s; the database has changed", call.label, execution.failure)
            self._report(call.label)
            if call.volatile or call.procedure:
                # It has run: whoever repeats it repeats what it has done.
                return Problem(503, "the routine has run, but its result has other columns than before")
            return unavailable("the result has other columns than before; what it has now is being read")
        log.error("%s: the result could not be rendered", call.label, exc_info=execution.failure)
        problem = Problem(500, "the result could not be rendered")
        problem.logged = True
        return problem


def _refused_value(call: Call, context: RequestContext, execution: Execution, message: str) -> Problem | None:
    """400 for a value of the request that is none of its type, whatever the policy says of its SQLSTATE."""
    error = execution.error
    number = refused_argument(error.context) if error is not None else None
    if number is None or call.refusals is None or execution.failed_ahead or isinstance(execution.statement, Script):
        return None
    picks = execution.statement.picks
    place = number - 1 if picks is None else picks[number - 1]
    # Constraints of a domain have names, which are nobody's business.
    reason = message
    if error is not None and error.sqlstate.startswith("23"):
        reason = "null is not allowed" if error.sqlstate == NOT_NULL else "the value is not allowed"
    refused = call.refusals.error(context.mask, place, reason)
    if refused is None:
        return None
    return unbound(refused.redacted() if call.sensitive else refused)


def _refused_column(
    call: Call, context: RequestContext, execution: Execution, message: str, tries: AttemptState
) -> Problem:
    """What any error becomes; where it is about a column of the table that is written, it says which one."""
    error, refusals = execution.error, call.refusals
    if error is None or refusals is None or not refusals.columns or execution.failed_ahead:
        return _answer(call, execution, message, tries)
    if error.sqlstate == COMPUTED:
        named = _QUOTED.search(error.message)
        return unbound((named and refusals.computed(context.mask, named[1])) or BindingError(400, message))
    problem = _answer(call, execution, message, tries)
    if error.sqlstate == NOT_NULL and error.column:
        fault = refusals.without_value(context.mask, context.arguments, error.column)
        problem.others = {**problem.others, "errors": [fault.members]} if fault else problem.others
    return problem


def level_of(status: int) -> int:
    if status >= 500:
        return logging.ERROR
    # With a status of success a policy says that nothing is wrong.
    return logging.WARNING if status >= 300 else logging.DEBUG


def _passes(call: Call, execution: Execution) -> bool:
    """The error may pass by itself, and nothing of the call has stayed (driver-24, driver-25).

    What a procedure that may commit on its way has done before it failed is not known; only that it never began is.
    """
    strategy = call.retry
    if strategy is None or execution.failure is not None:
        return False
    if execution.loss == Loss.NOT_STARTED:
        return True
    if execution.committed or call.commits or (execution.loss == Loss.IN_DOUBT and not execution.statement.repeatable):
        return False
    if execution.loss != Loss.NOT_LOST:
        return True
    error = execution.error
    if error is None or error.source_function in _PERMANENT:
        return False
    return error.sqlstate in strategy.codes and not call.policy.maps(error.sqlstate)


def _said(error: ServerError, message: str) -> str:
    """On one line."""
    return f"{error.sqlstate}: {message}".replace("\n", "\\n")


def _told(call: Call, context: RequestContext) -> str:
    """The request, behind what went wrong with it."""
    return "" if call.describe is None else f"\n{call.describe(context)}"


def _why_broken(call: Call, context: RequestContext, execution: Execution) -> str:
    error = execution.error
    if error is None:
        return str(execution.failure or "the connection to the database was lost")
    if error.sqlstate == QUERY_CANCELED and _out_of_time(execution):
        return f"nothing more has come within its limit of {execution.timeout:g} s"
    return _said(error, hide_values(error.message, context.arguments) if call.sensitive else error.message)


def _why(execution: Execution) -> str:
    return "the connection was lost" if execution.error is None else execution.error.sqlstate


def _answer(call: Call, execution: Execution, message: str, tries: AttemptState) -> Problem:
    error = execution.error
    assert error is not None  # noqa: S101 (asked only for runs that ended in an error)
    if error.sqlstate == QUERY_CANCELED and _out_of_time(execution):
        return call.policy.timeout.out_of_time()
    if tries.retries and _passes(call, execution):
        log.error("%s: %s after %d attempts", call.label, error.sqlstate, tries.retries + 1)
        detail = f"Failed to execute command after {tries.retries + 1} attempts. See inner exception for details."
        return Problem(500, detail)
    if execution.failed_ahead:
        # Policies are for what the routine says (errors-10), and it has not begun.
        return call.policy.unmapped(_reported(call, error, message))
    return call.policy.problem(_reported(call, error, message, sensitive=call.sensitive))


def _reported(call: Call, error: ServerError, message: str, *, sensitive: bool = False) -> DatabaseError:
    """sensitive: of DETAIL and HINT nobody knows whether they repeat a value."""
    column = error.column
    if column and call.refusals is not None:
        column = call.refusals.request_name(column)
    names = (("constraint", error.constraint), ("table", error.table), ("column", error.column))
    return DatabaseError(
        error.sqlstate,
        message,
        raised=error.source_function == RAISE,
        detail=None if sensitive else error.detail,
        hint=None if sensitive else error.hint,
        names=tuple((kind, name) for kind, name in names if name),
        column=column,
    )


def _was_deadline(context: RequestContext, execution: Execution) -> bool:
    """Its time is over because that of its request is: server and watchdog know one limit only, the earlier one, and
    may be faster than the timer that ends the request.
    """
    if not context.deadline or time.monotonic() < context.deadline - CLOCKS_DIFFER:
        return False
    canceled = execution.error is not None and execution.error.sqlstate == QUERY_CANCELED and _out_of_time(execution)
    return canceled or isinstance(execution.failure, CallTimeoutError)


def _out_of_time(execution: Execution) -> bool:
    """The service's own limit has expired, whether the server or the watchdog minded it."""
    limit = execution.timeout
    return limit > 0 and max(execution.seconds, execution.elapsed) >= limit - min(CLOCKS_DIFFER, limit / 2)


def _is_over(execution: Execution) -> bool:
    """Nothing is left of its time. Each statement of a file has the whole of it (sql-files-28)."""
    return 0 < execution.timeout <= execution.elapsed and type(execution.statement) is not Script


def _renew_statement(call: Call, mask: int, execution: Execution) -> bool:
    if not _is_stale(execution):
        return False
    current = call.statements.get(mask)
    if current is execution.statement:
        call.statements[mask] = current.next_generation()
    # The schema has changed, and with it what a generic plan would touch.
    call.trip(mask)
    return True


def _guard_failed(execution: Execution) -> bool:
    error = execution.error
    if (
        error is None
        or not execution.statement.guarded
        or execution.loss != Loss.NOT_LOST
        or execution.failure is not None
    ):
        return False
    return guard_failed(error.sqlstate, error.position, error.context)


def _is_stale(execution: Execution) -> bool:
    """The statement itself no longer fits the schema, and nothing of it ran (driver-27).

    What it names is not there: the error has a place in the statement. Without one it comes from a value, such as the
    text for a `regclass`, which clients send.
    """
    error = execution.error
    if error is None or error.sqlstate not in STALE or error.context is not None or execution.seen_result:
        return False
    if error.sqlstate == "0A000":
        return error.source_function == "RevalidateCachedQuery"
    if error.sqlstate == NO_SCHEMA:
        return any(f'"{name}".'.encode() in execution.statement.sql for name in _QUOTED.findall(error.message))
    return error.sqlstate not in NAMED or error.position is not None


def _is_lookup_failure(execution: Execution) -> bool:
    """Whether the server failed to find an object in its system caches because it was dropped meanwhile."""
    error = execution.error
    if error is None or error.sqlstate != INTERNAL or error.source_function == RAISE:
        return False
    return _LOOKUP_FAILED.match(error.message) is not None


def _has_lost_statement(execution: Execution) -> bool:
    """It is not prepared on that connection any more, which closes."""
    return execution.error is not None and execution.error.sqlstate == "26000" and _is_stale(execution)


def _lost(execution: Execution, *, committed: bool) -> Problem:
    """committed: what the server rolled back may be less than all, as procedures commit on their way."""
    if execution.loss == Loss.IN_DOUBT or (committed and execution.loss == Loss.ROLLED_BACK):
        return unavailable(f"the connection to the database was lost while the request ran; {UNKNOWN_OUTCOME}")
    return unavailable("the connection to the database was lost before the request took effect")
