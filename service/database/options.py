"""How one worker uses a database."""

from __future__ import annotations

from dataclasses import dataclass, field

from rowcall.service.database.pools.pool import PoolOptions


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """Times in seconds."""

    pools: PoolOptions = field(default_factory=PoolOptions)
    sharing: bool = True
    share_writes: bool = True
    """VOLATILE routines that leave nothing in their session share connections, too."""
    trust_stable: bool = False
    """What is declared STABLE or IMMUTABLE is taken to leave nothing, whatever was found."""
    slow: float = 0.003
    """Server time from which a call counts as slow."""
    timeout: float = 30.0
    stream_after: int = 524_288
    """Bytes of a result after which it leaves as a stream."""
    shared_limit: int = 1_048_576
    """Bytes of a result that a shared connection may buffer."""
