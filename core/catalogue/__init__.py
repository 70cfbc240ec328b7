"""The database as data: routines, tables, types, and the words for them."""
