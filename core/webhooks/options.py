"""Options of the delivery of published messages."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Subscriber:
    """One subscriber of the configuration."""

    name: str
    url: str
    secrets: tuple[str, ...] = field(repr=False)
    topics: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """Options of the delivery of webhooks. Times in seconds."""

    subscribers: tuple[Subscriber, ...] = ()
    concurrency: int = 16
    """Deliveries of a worker at the same time."""
    timeout: float = 20.0
    backoff: float = 5.0
    """Before the second attempt; tripled for each further one."""
    longest_pause: float = 21_600.0
    give_up: float = 259_200.0
    """Time after which a delivery is not attempted any more."""
    retention: float = 604_800.0
