"""The rows of the key table, one module for each part of the configuration. `core.config.table` joins them."""
