"""Foundations of the other extension modules: the output buffer, libpq functions, HTTP heads, text loops in C."""
