"""Options of a database for one worker."""

from __future__ import annotations

from dataclasses import dataclass, field

from rowcall.service.database.pools.pool import PoolOptions


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """Options of a database for one worker. Times in seconds."""

    pools: PoolOptions = field(default_factory=PoolOptions)
    sharing: bool = True
    share_writes: bool = True
    """VOLATILE routines without session effects run in a pipelined pool, too."""
    trust_stable: bool = False
    """Routines declared STABLE or IMMUTABLE are assumed to have no session effects, without an analysis."""
    slow: float = 0.003
    """Server time from which a call counts as slow."""
    timeout: float = 30.0
    stream_after: int = 524_288
    """Bytes of a result from which it is streamed."""
    shared_limit: int = 1_048_576
    """Bytes of a result that a pipelined connection may buffer."""
