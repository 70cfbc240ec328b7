"""Rows of the key table, one module for each part of the configuration. `core.config.table` concatenates them."""
