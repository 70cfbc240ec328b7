"""Outgoing requests as data: what the comment of a composite type says."""
