"""Options of rate limits (limits-1 to limits-5)."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """The kind of counting."""

    FIXED_WINDOW = "FixedWindow"
    SLIDING_WINDOW = "SlidingWindow"
    TOKEN_BUCKET = "TokenBucket"  # noqa: S105 (the name of a way to count)
    CONCURRENCY = "Concurrency"


class SourceKind(enum.Enum):
    """The source of the text that distinguishes callers."""

    CLAIM = "Claim"
    HEADER = "Header"
    ADDRESS = "IpAddress"
    STATIC = "Static"


@dataclass(frozen=True, slots=True)
class Source:
    """A source of the text that distinguishes callers."""

    kind: SourceKind
    text: str = ""
    """Name of the claim or header, or the text itself."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A limit.

    permits: by kind, maximum number of requests in a window, of tokens in a bucket, or of concurrent requests. seconds:
    length of a window, or interval between additions of tokens. segments: of a sliding window.
    """

    name: str
    kind: Kind
    permits: int
    seconds: float = 0.0
    segments: int = 1
    added: int = 0
    """Tokens that each period adds."""
    queue: int = 0
    """Maximum number of requests that wait."""
    oldest_first: bool = True
    sources: tuple[Source, ...] = ()
    """Sources of the text that distinguishes callers; the first text is used. Empty: all callers are counted
    together."""
    free_for_users: bool = False
    """Whether signed-in callers are not limited."""
    status: int = 429
    message: str | None = None

    @property
    def depends_on_user(self) -> bool:
        """Whether the decision depends on the user, so that callers have to be authenticated before."""
        return self.free_for_users or any(source.kind is SourceKind.CLAIM for source in self.sources)


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Options of rate limiting.

    policies: enabled and valid ones. disabled: names of policies that are switched off. default: of endpoints without
    the annotation.
    """

    enabled: bool = False
    default: str | None = None
    policies: tuple[Policy, ...] = ()
    disabled: frozenset[str] = frozenset()
    redis: str | None = None
    """URL of the Redis with the counters of several hosts. None: in the shared state of the host."""

    def policy(self, name: str | None) -> Policy | None:
        """Return the policy named `name`; None: the default policy. The result is None if there is no such policy,
        or if rate limiting is off."""
        if not self.enabled:
            return None
        return next((policy for policy in self.policies if policy.name == (name or self.default)), None)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(policy.name for policy in self.policies)
