"""A private PostgreSQL, and the demo that runs on one."""
