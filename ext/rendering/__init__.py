"""Rows of PostgreSQL → bodies of responses, in C."""
