"""What the configuration says about limits (limits-1 to limits-5)."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    FIXED_WINDOW = "FixedWindow"
    SLIDING_WINDOW = "SlidingWindow"
    TOKEN_BUCKET = "TokenBucket"  # noqa: S105 (the name of a way to count)
    CONCURRENCY = "Concurrency"


class SourceKind(enum.Enum):
    """Where the text comes from that tells callers apart."""

    CLAIM = "Claim"
    HEADER = "Header"
    ADDRESS = "IpAddress"
    STATIC = "Static"


@dataclass(frozen=True, slots=True)
class Source:
    kind: SourceKind
    text: str = ""
    """Name of the claim or header, or the text itself."""


@dataclass(frozen=True, slots=True)
class Policy:
    """permits: in a window; in a full bucket; at one time. seconds: of a window; between additions to a bucket."""

    name: str
    kind: Kind
    permits: int
    seconds: float = 0.0
    segments: int = 1
    added: int = 0
    """Tokens in each period."""
    queue: int = 0
    """Requests that may wait."""
    oldest_first: bool = True
    sources: tuple[Source, ...] = ()
    """The first that gives a text counts. Empty: all callers are counted together."""
    free_for_users: bool = False
    """Signed-in callers are not limited."""
    status: int = 429
    message: str | None = None

    @property
    def asks_who_calls(self) -> bool:
        return self.free_for_users or any(source.kind is SourceKind.CLAIM for source in self.sources)


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """policies: those that are enabled and can be used. disabled: names of configured ones that are switched off."""

    enabled: bool = False
    default: str | None = None
    policies: tuple[Policy, ...] = ()
    disabled: frozenset[str] = frozenset()
    redis: str | None = None
    """Where counters are that hold over several hosts. None: in the store of the host."""

    def policy(self, name: str | None) -> Policy | None:
        """That of the annotation, else the default one."""
        if not self.enabled:
            return None
        return next((one for one in self.policies if one.name == (name or self.default)), None)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(one.name for one in self.policies)


NO_LIMITS = LimitOptions()
