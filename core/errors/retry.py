"""Retry strategies: which failed commands run again, and after which delays (execution-11 to execution-14).

Only data. `service.database` decides whether a failed command can run again without taking effect twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowcall.core.data.record import Record

DELAYS = (0, 1, 2, 5, 10)
"""Seconds before each retry."""
RETRYABLE = (
    *("40001", "40P01"),
    *("08000", "08003", "08006", "08001", "08004", "08007", "08P01"),
    *("53000", "53100", "53200", "53300", "53400"),
    *("57P01", "57P02", "57P03"),
    *("58000", "58030"),
    *("55P03", "55006", "55000"),
)
"""SQLSTATEs of temporary errors: conflicts, lost connections, exhausted resources, a restart of the server."""


@dataclass(frozen=True, slots=True)
class RetryStrategy(Record):
    """A retry strategy. delays: seconds before each retry; their number is the number of retries. codes: SQLSTATEs of
    the errors after which a command is retried."""

    delays: tuple[float, ...] = DELAYS
    codes: frozenset[str] = frozenset(RETRYABLE)

    @property
    def attempts(self) -> int:
        """Maximum number of runs of one command."""
        return len(self.delays) + 1


@dataclass(frozen=True, slots=True)
class RetryStrategies(Record):
    """The configured strategies by name. default: for endpoints without a strategy or with an unknown one; None: they
    are not retried."""

    named: Mapping[str, RetryStrategy] = field(default_factory=dict)
    default: RetryStrategy | None = None

    def of(self, name: str | None) -> RetryStrategy | None:
        """Return the strategy of this name; the default if `name` is None or unknown. None: nothing is retried."""
        return self.default if name is None else self.named.get(name, self.default)
