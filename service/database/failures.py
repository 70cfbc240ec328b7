"""Handling of failed executions: a repetition at once, a retry after a delay, or a `Problem` for the client.

There are two reasons for another run. If the connection or the prepared statement was at fault and nothing of the call
has taken effect, it is repeated silently and at once (driver-25 to driver-28). If the error is transient and the
endpoint's retry strategy lists it, it is retried after the delays of the strategy (execution-13, execution-14). Neither
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
from rowcall.core.errors.problems import Problem, UnavailableError, binding_problem, unavailable
from rowcall.ext.driver.execution import Execution, Loss, Script, ServerError
from rowcall.ext.rendering.body_writer import ColumnsChangedError
from rowcall.service.database.call import Call
from rowcall.service.database.pools.overload import ConnectionTimeoutError
from rowcall.service.request_context.deadline import DeadlineError, is_past
from rowcall.service.request_context.redaction import hide_values
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.request_context.trace import log_extra

log = logging.getLogger("rowcall.database")

# Errors that mean that a prepared statement no longer fits the schema, raised before anything of the call ran.
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
and a sequence that the session has not used.
"""

RAISE = "exec_stmt_raise"
"""The function of PostgreSQL that reports errors raised by PL/pgSQL."""

UNKNOWN_OUTCOME = "it is not known whether it took effect"
OUT_OF_TIME = "the database has not answered in time"
CLOCKS_DIFFER = 0.5
"""Seconds by which our clock may have started after the server's: a result at the head of a pipelined connection is
noticed late.
"""


@dataclass(slots=True)
class AttemptState:
    """The failed runs of one request so far."""

    repeats: int = 0
    """Failed runs, except those that a guard refused; they limit the silent repetitions."""
    retries: int = 0
    """Retries by the endpoint's strategy so far."""
    trips: int = 0
    """Runs that were refused because a guarded definition has changed."""
    began: float = 0.0
    """`Execution.began` of the first run, from which the limit of the request counts; 0: the next run sets it, since
    each retry of a strategy has a new limit.
    """


class CallTimeoutError(Exception):
    """The time limit of a request has passed, counted from its start, without an answer of the server."""


GIVEN_TIME = 30.0
"""Seconds in which a statement that no longer fits the schema is expected to fit again."""


class Changes:
    """The times at which the statements of endpoints first and last did not fit the schema, by name of the endpoint."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[float, float]] = {}

    def record_failure(self, label: str) -> bool:
        """Record that the statement of the endpoint `label` does not fit the schema, and return whether another reading
        of the catalogue may still help. It may for `GIVEN_TIME` seconds after the first such failure; after twice that
        time without one, the next counts as the first."""
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
    """Evaluates the failed executions of one database.

    connections: number of dedicated connections of the database. A run whose prepared statement is missing on its
    connection is repeated once more than that, since each connection may have lost it.
    """

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._changes = Changes()
        self.on_stale: Callable[[], None] | None = None
        """Requests another reading of the catalogue. None: the catalogue of this database is not read."""

    def pause(self, call: Call, mask: int, execution: Execution, tries: AttemptState) -> float | None:
        """Return the seconds until `call` may run again after this failed execution, or None if it may not. A retry is
        logged; a statement that no longer fits the schema is replaced.

        mask: of the statement that ran. tries: earlier failed runs of the request; this one is added.
        """
        if guard_has_failed(execution):
            # Nothing of it has run, and the next run does not use a guarded statement.
            tries.trips += 1
            call.drop_guards(mask)
            return 0.0
        tries.repeats += 1
        if self._repeat(call, mask, execution, tries.repeats):
            return 0.0
        strategy = call.retry
        if strategy is None or not _is_retryable(call, execution) or tries.retries >= len(strategy.delays):
            return None
        delay = strategy.delays[tries.retries]
        tries.retries += 1
        tries.began = 0.0
        log.warning(
            "%s: attempt %d failed (%s), the next one follows in %g s",
            call.label,
            tries.retries,
            _loss_or_sqlstate(execution),
            delay,
        )
        return delay

    def _repeat(self, call: Call, mask: int, execution: Execution, repeats: int) -> bool:
        """Return whether the call may run again at once without taking effect twice. A statement that no longer fits
        the schema is replaced, or reported, so that the catalogue is read again.

        mask: of the statement that ran. repeats: failed runs of the request, including this one, except those that a
        guard refused.
        """
        if _is_query_fault(call, mask, execution) or _has_no_tenant(call, execution):
            return False
        if _is_over(execution):
            self._report_stale(execution)
            return False
        if execution.committed and not execution.statement.repeatable:
            self._report_stale(execution)
            return False
        if execution.loss == Loss.NOT_STARTED:
            return repeats <= 3
        if execution.loss == Loss.ROLLED_BACK:
            # Up to three times: after one backend was terminated, the next one may have been as well.
            return repeats <= 3 and not call.commits
        if execution.loss == Loss.IN_DOUBT:
            return repeats <= 1 and execution.statement.repeatable
        error = execution.error
        if _has_lost_statement(execution):
            # Only that connection has lost it, and closes; the statement itself is valid. The next connection may have
            # lost it too.
            return repeats <= 1 + self._connections
        if error is None or repeats > 1:
            self._report_stale(execution)
            return False
        if error.sqlstate in ("25P01", "25P02") and execution.connection is None:
            return True
        if error.sqlstate == "42P05" and not call.commits:
            # An earlier run left the name there, on a connection that closes now; this run has been rolled back.
            return True
        if _is_lookup_failure(execution):
            # The error has rolled back the transaction, unless the call commits itself.
            call.drop_guards(mask)
            return not call.commits
        return _renew_statement(call, mask, execution)

    def renew(self, call: Call, mask: int, execution: Execution) -> None:
        """Replace the statement for this mask if it no longer fits the schema, for the next request. The failed run
        itself is not repeated.
        """
        self._repeat(call, mask, execution, 1)

    def _report_stale(self, execution: Execution) -> None:
        """Request another reading of the catalogue if the statement no longer fits the schema."""
        if _is_stale(execution) or _is_lookup_failure(execution):
            self._report(str(execution.label))

    def _report(self, label: str) -> bool:
        """Request another reading of the catalogue, if it may help the endpoint `label`. Return whether it was
        requested.
        """
        if self.on_stale is None or not self._changes.record_failure(label):
            return False
        self.on_stale()
        return True

    def report_broken(self, call: Call, context: RequestContext, execution: Execution) -> None:
        """Log why a streamed response ends early, unless it has ended well or its client has disconnected. The client
        cannot be informed any more.
        """
        if execution.succeeded or execution.abandoned:
            return
        log.error(
            "%s: the response is cut off: %s%s",
            call.label,
            _why_broken(call, context, execution),
            _details(call, context),
            extra=log_extra(context.protocol),
        )

    def problem(
        self, call: Call, context: RequestContext, execution: Execution, tries: AttemptState | None = None
    ) -> Problem:
        """Return the problem document for a failed run that is not repeated. If the statement no longer fits the
        schema, another reading of the catalogue is requested. tries: the failed runs of the request; None: this is the
        only one.

        The failure is logged, except a passed deadline, a lost connection, a `Problem` of the pool, an unknown tenant,
        and a query that does not fit the columns of the result.
        """
        if _was_deadline(context, execution):
            return DeadlineError(context)
        if isinstance(execution.failure, Problem):
            return execution.failure
        if isinstance(execution.failure, CallTimeoutError):
            _log_timeout(call, context, execution)
            late = call.policy.timeout.timeout_problem()
            if not execution.statement.repeatable:
                # On a pipelined connection it may still run.
                late.detail = f"{late.detail or OUT_OF_TIME}; {UNKNOWN_OUTCOME}"
            return late
        if execution.loss != Loss.NOT_LOST:
            return _connection_lost_problem(execution, committed=call.commits)
        if _is_over(execution) and _has_lost_statement(execution):
            # Nothing of it has run, and no time was left to run it on another connection.
            _log_timeout(call, context, execution)
            return call.policy.timeout.timeout_problem()
        if _has_no_tenant(call, execution):
            return Problem(404, "there is no such tenant")
        if execution.error is not None and _is_query_fault(call, context.mask, execution):
            return Problem(400, f"the query does not fit the columns of the result: {execution.error.message}")
        if (
            call.existed
            and not execution.failed_ahead
            and (_is_stale(execution) or _is_lookup_failure(execution))
            and self._report(call.label)
        ):
            assert execution.error is not None  # noqa: S101 (an error is what makes it stale)
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
            text = _error_line(execution.error, message)
            extra = log_extra(context.protocol)
            log.log(level_of(problem.status), "%s: %s%s", call.label, text, _details(call, context), extra=extra)
            problem.logged = True
            return problem
        if isinstance(execution.failure, ColumnsChangedError):
            log.warning("%s: %s; the database has changed", call.label, execution.failure)
            self._report(call.label)
            if call.volatile or call.procedure:
                # It has run, so a repetition by the client would repeat its effects.
                return UnavailableError(503, "the routine has run, but its result has other columns than before")
            return unavailable("the result has other columns than before; what it has now is being read")
        extra = log_extra(context.protocol)
        log.error("%s: the result could not be rendered", call.label, exc_info=execution.failure, extra=extra)
        problem = Problem(500, "the result could not be rendered")
        problem.logged = True
        return problem


def _log_timeout(call: Call, context: RequestContext, execution: Execution) -> None:
    text = "%s: no answer within its limit of %g s"
    log.warning(text, call.label, execution.timeout, extra=log_extra(context.protocol))


def _has_no_tenant(call: Call, execution: Execution) -> bool:
    """Whether the schema of the request's tenant does not exist."""
    error = execution.error
    return call.of_tenant and execution.failed_ahead and error is not None and error.sqlstate == NO_SCHEMA


def _is_query_fault(call: Call, mask: int, execution: Execution) -> bool:
    """Return whether PostgreSQL refuses the filter, order or columns that the request applies to the result of the
    endpoint (`Call.inner`): the position of the error is in the statement with this mask, but outside the routine's
    SQL."""
    error = execution.error
    if call.inner is None or error is None or not error.sqlstate.startswith("42") or error.position is None:
        return False
    if error.context is not None or execution.failed_ahead or not error.position.isdigit():
        return False
    inner = call.inner(mask)
    begin = execution.statement.sql.decode().find(inner)
    return begin >= 0 and not begin < int(error.position) <= begin + len(inner)


def _refused_value(call: Call, context: RequestContext, execution: Execution, message: str) -> Problem | None:
    """Return a 400 problem if the server rejected a value of the request as invalid for its type, regardless of the
    policy for the SQLSTATE; otherwise None. message: that of the error, for the client.
    """
    error = execution.error
    number = refused_argument(error.context) if error is not None else None
    if number is None or call.refusals is None or execution.failed_ahead or isinstance(execution.statement, Script):
        return None
    picks = execution.statement.picks
    place = number - 1 if picks is None else picks[number - 1]
    # Names of domain constraints are internal and are not sent to clients.
    reason = message
    if error is not None and error.sqlstate.startswith("23"):
        reason = "null is not allowed" if error.sqlstate == NOT_NULL else "the value is not allowed"
    refused = call.refusals.error(context.mask, place, reason)
    if refused is None:
        return None
    return binding_problem(refused.without_values() if call.sensitive else refused)


def _refused_column(
    call: Call, context: RequestContext, execution: Execution, message: str, tries: AttemptState
) -> Problem:
    """Return the problem for an error of the server that `_refused_value` does not handle. It names the column of the
    written table if that is a generated column (400), or lacks a value (NOT NULL). message, tries: as for `_answer`."""
    error, refusals = execution.error, call.refusals
    if error is None or refusals is None or not refusals.columns or execution.failed_ahead:
        return _answer(call, execution, message, tries)
    if error.sqlstate == COMPUTED:
        named = _QUOTED.search(error.message)
        return binding_problem(
            (named and refusals.generated_column_error(context.mask, named[1])) or BindingError(400, message)
        )
    problem = _answer(call, execution, message, tries)
    if error.sqlstate == NOT_NULL and error.column:
        fault = refusals.without_value(context.mask, context.arguments, error.column)
        problem.others = {**problem.others, "errors": [fault.members]} if fault else problem.others
    return problem


def level_of(status: int) -> int:
    """Return the log level for a response with this status."""
    if status >= 500:
        return logging.ERROR
    # If a policy maps the error to a success status, nothing is wrong.
    return logging.WARNING if status >= 300 else logging.DEBUG


def _is_retryable(call: Call, execution: Execution) -> bool:
    """Return whether the call may be retried after a delay: it has a retry strategy for this error, and nothing of the
    call has taken effect (driver-24, driver-25).

    A lost connection is retried by every strategy. An error of the server is retried if the strategy lists it, the
    policy does not map it, and its cause can pass by itself (`_PERMANENT` lists the functions of the server whose
    errors stay). A failed procedure that may commit is not retried unless it never started, because its effects are
    unknown.
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


def _error_line(error: ServerError, message: str) -> str:
    """Return SQLSTATE and message on one line. message: instead of that of the error."""
    return f"{error.sqlstate}: {message}".replace("\n", "\\n")


def _details(call: Call, context: RequestContext) -> str:
    """Return the description of the request for the log, on a line of its own; empty if the call is not described."""
    return "" if call.describe is None else f"\n{call.describe(context)}"


def _why_broken(call: Call, context: RequestContext, execution: Execution) -> str:
    """Return the reason why a stream broke, for the log; values of the request are hidden if the call is sensitive."""
    error = execution.error
    if error is None:
        return str(execution.failure or "the connection to the database was lost")
    if error.sqlstate == QUERY_CANCELED and _out_of_time(execution):
        return f"nothing more has come within its limit of {execution.timeout:g} s"
    return _error_line(error, hide_values(error.message, context.arguments) if call.sensitive else error.message)


def _loss_or_sqlstate(execution: Execution) -> str:
    """Return the reason of a failed run for the log: the SQLSTATE, or that the connection was lost."""
    return "the connection was lost" if execution.error is None else execution.error.sqlstate


def _answer(call: Call, execution: Execution, message: str, tries: AttemptState) -> Problem:
    """Return the problem for an error of the server, as the policy of the call maps it.

    The policy is not applied to the error in three cases: the time limit has passed (problem of its timeout), a
    transient error remains after retries (500 with the number of attempts), or the error is in a statement in front of
    the routine (unmapped problem).

    execution: ended in an error. message: of that error, for the client. tries: the failed runs of the request.
    """
    error = execution.error
    assert error is not None  # noqa: S101 (called only for runs that ended in an error)
    if error.sqlstate == QUERY_CANCELED and _out_of_time(execution):
        return call.policy.timeout.timeout_problem()
    if tries.retries and _is_retryable(call, execution):
        log.error("%s: %s after %d attempts", call.label, error.sqlstate, tries.retries + 1)
        detail = f"Failed to execute command after {tries.retries + 1} attempts. See inner exception for details."
        return Problem(500, detail)
    if execution.failed_ahead:
        # Policies map errors of the routine (errors-10), and the routine has not begun.
        return call.policy.unmapped_problem(_convert_error(call, error, message))
    return call.policy.problem(_convert_error(call, error, message, sensitive=call.sensitive))


def _convert_error(call: Call, error: ServerError, message: str, *, sensitive: bool = False) -> DatabaseError:
    """Convert the driver's error for a policy, with the column as the request names it. message: instead of that of the
    error. sensitive: DETAIL and HINT are left out, as they may repeat values.
    """
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
    """Whether the execution timed out because of the deadline of its request. Server and watchdog know only the earlier
    of both limits, and may react before the timer that ends the request.
    """
    if not context.deadline or time.monotonic() < context.deadline - CLOCKS_DIFFER:
        return False
    if isinstance(execution.failure, ConnectionTimeoutError):
        # A pool waits no longer than until the deadline.
        return is_past(context)
    canceled = execution.error is not None and execution.error.sqlstate == QUERY_CANCELED and _out_of_time(execution)
    return canceled or isinstance(execution.failure, CallTimeoutError)


def _out_of_time(execution: Execution) -> bool:
    """Whether the service's own limit has passed, enforced by the server or by the watchdog."""
    limit = execution.timeout
    return limit > 0 and max(execution.seconds, execution.elapsed) >= limit - min(CLOCKS_DIFFER, limit / 2)


def _is_over(execution: Execution) -> bool:
    """Whether the execution has used its whole time limit. False for files: each of their statements has the whole
    limit (sql-files-28).
    """
    return 0 < execution.timeout <= execution.elapsed and type(execution.statement) is not Script


def _renew_statement(call: Call, mask: int, execution: Execution) -> bool:
    """Replace the statement for this mask if it no longer fits the schema. Return whether it did not fit, so that the
    call may run again.
    """
    if not _is_stale(execution):
        return False
    current = call.statements.get(mask)
    if current is execution.statement:
        call.statements[mask] = current.next_generation()
    # The schema has changed, so the tables that a generic plan would use may have changed too.
    call.drop_guards(mask)
    return True


def guard_has_failed(execution: Execution) -> bool:
    """Whether a guarded statement was refused because a definition had changed; nothing of it has run."""
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
    """Whether the statement itself no longer fits the schema, and nothing of it ran (driver-27).

    An error about a missing name has a position in the statement. Without a position, it comes from a value, such as
    the text for a `regclass`, which clients send.
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
    """Whether the statement is no longer prepared on that connection, which closes."""
    return execution.error is not None and execution.error.sqlstate == "26000" and _is_stale(execution)


def _connection_lost_problem(execution: Execution, *, committed: bool) -> Problem:
    """Return the problem for a lost connection. committed: the call commits itself, so a rollback may cover only a
    part.
    """
    if execution.loss == Loss.IN_DOUBT or (committed and execution.loss == Loss.ROLLED_BACK):
        return unavailable(f"the connection to the database was lost while the request ran; {UNKNOWN_OUTCOME}")
    return unavailable("the connection to the database was lost before the request took effect")
