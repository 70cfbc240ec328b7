version: int
"""Version of the libpq in use, as `PQlibVersion` returns it, for example 180006."""

can_batch_syncs: bool
"""Whether a Sync can be queued without a `send()` of its own (libpq 17 and newer)."""
