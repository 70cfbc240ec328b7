"""Clients written to disk: at the start, and when the database has changed."""
