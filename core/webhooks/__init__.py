"""Signatures of webhooks: Standard Webhooks, and those of some senders."""
