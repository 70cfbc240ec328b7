version: int
"""Version of the libpq in use, as `PQlibVersion` gives it: 180006."""

can_batch_syncs: bool
"""libpq 17 and newer: a Sync can be queued without a `send()` of its own."""
