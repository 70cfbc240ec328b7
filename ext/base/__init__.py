"""Foundations of the other extension modules: output buffer, libpq functions, HTTP heads, checks, loops in C."""
