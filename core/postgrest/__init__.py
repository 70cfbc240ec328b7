"""PostgREST's interface on tables and functions as data: requests, plans, statements, errors."""
