"""Requests with an `Idempotency-Key`, which take effect once (draft-ietf-httpapi-idempotency-key-header)."""
