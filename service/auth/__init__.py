"""Signing in and out, sessions, and who may call (spec part 5)."""
