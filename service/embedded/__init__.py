"""A private PostgreSQL server, and the demo that uses it."""
