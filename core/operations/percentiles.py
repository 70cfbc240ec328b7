"""Percentiles of durations that were counted in buckets."""

from __future__ import annotations

from collections.abc import Sequence


def percentile(bounds: Sequence[float], counts: Sequence[float], share: float) -> float | None:
    """Return the value below which `share` (0 to 1) of the values are, in the unit of the bounds; None: there are no
    values.

    bounds: ascending upper bounds of buckets. counts: number of values in each bucket, not cumulative; the last one is
    the number of those above all bounds. Within a bucket, values count as evenly distributed; above all bounds, the
    largest bound is returned.
    """
    total = sum(counts)
    if total <= 0:
        return None
    rank = share * total
    below, lower = 0.0, 0.0
    for bound, count in zip(bounds, counts, strict=False):
        if count > 0 and below + count >= rank:
            return lower + (bound - lower) * max(0.0, rank - below) / count
        below, lower = below + count, bound
    return bounds[-1]
