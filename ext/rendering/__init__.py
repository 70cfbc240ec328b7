"""Render rows of PostgreSQL into response bodies, in Cython."""
