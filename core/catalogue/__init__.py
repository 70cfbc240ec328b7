"""The database as data: routines, tables, types, and type names."""
