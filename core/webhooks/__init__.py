"""Webhooks as data: options of their delivery, and their signatures (Standard Webhooks, and those of some senders)."""
