"""Connections to PostgreSQL as state machines over libpq, with many executions in flight, and the steps of requests."""
