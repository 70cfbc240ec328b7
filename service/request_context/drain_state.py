"""Whether this process is about to leave: what answers requests looks here, whoever stops the process says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class DrainState:
    """Of one worker."""

    unready: bool = False
    """Load balancers are to send their requests elsewhere; those that come are answered as ever."""
    closing: bool = False
    """Clients are to come back on another connection."""
