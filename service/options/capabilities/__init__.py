"""Options of capabilities, one module for each."""
