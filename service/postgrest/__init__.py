"""PostgREST's interface on tables and functions: the parts with input and output, around `core.postgrest`."""
