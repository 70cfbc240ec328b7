"""Options of a database for one worker."""

from __future__ import annotations

from dataclasses import dataclass, field

from rowcall.core.config.sections.connections import PoolOptions


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """Options of a database for one worker. timeout: seconds that a call without a limit of its own may take; 0: no
    limit.
    """

    pools: PoolOptions = field(default_factory=PoolOptions)
    timeout: float = 30.0
    shared_limit: int = 1_048_576
    """Bytes of a result that a pipelined connection may buffer."""
