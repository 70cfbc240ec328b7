"""Connections as state machines over libpq: many requests in flight, each with its own end."""
