"""Uploaded files as plain data: options, checks, names, and what is told about each file (uploads-1 to uploads-25)."""
