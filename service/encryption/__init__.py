"""Encryption of values in the database: `encrypt` for parameters, `decrypt` for columns (protection-8 to
protection-13)."""
