"""Webhooks that this service receives."""
