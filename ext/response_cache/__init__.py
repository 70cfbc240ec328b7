"""Cached responses in memory that the processes of a host share: memory layout, shards, and the table of shards."""
