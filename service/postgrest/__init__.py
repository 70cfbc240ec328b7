"""PostgREST's interface on tables and functions: the parts that touch the world."""
