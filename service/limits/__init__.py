"""Limits on how often callers may ask: the steps, and where the counters are."""
