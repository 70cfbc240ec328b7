"""Connections as state machines over libpq: many executions in flight on each, every execution with its own result."""
