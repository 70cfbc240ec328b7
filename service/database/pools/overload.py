"""Problem documents for requests for which there is no connection."""

from __future__ import annotations

from rowcall.core.errors.problems import Problem, UnavailableError, unavailable


class ConnectionTimeoutError(UnavailableError):
    """No connection of the pool became free in time."""


class UnreachableError(UnavailableError):
    """The database cannot be reached."""

    cause: str | None = None
    """Message of the driver about the last attempt; None if it is unknown. It names the server, so only an interface
    that promises it to clients may send it.
    """


class Overload:
    """Makes the problem documents for requests for which there is no connection."""

    @staticmethod
    def full_problem() -> Problem:
        return unavailable("every database connection is busy and the queue of waiting requests is full")

    @staticmethod
    def stopping_problem() -> Problem:
        return unavailable("the service is stopping")

    @staticmethod
    def unreachable_problem(cause: str | None = None) -> Problem:
        """Return the problem of a request while the server cannot be reached. cause: message of the driver."""
        detail = "the database cannot be reached"
        problem = UnreachableError(503, detail, headers=unavailable(detail).headers)
        problem.cause = cause
        return problem

    @staticmethod
    def late_problem(seconds: float) -> Problem:
        """Return the problem of a request that has waited in vain for `seconds`, the longest wait of the pool or its
        own limit.
        """
        detail = f"no database connection became free within {seconds:g} s"
        return ConnectionTimeoutError(503, detail, headers=unavailable(detail).headers)

    @staticmethod
    def standing_queue_problem(seconds: float) -> Problem:
        """Return the problem of a request that has waited for `seconds` in a queue that never empties."""
        return unavailable(f"the database is overloaded; this request has waited for {seconds:g} s")
