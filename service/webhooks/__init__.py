"""Webhooks: publishing and delivering messages to subscribers, and verifying received webhooks."""
