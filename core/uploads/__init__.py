"""Uploaded files as plain data: options, checks, names, and what is told about each file (reference 05, 5)."""
