"""Uploaded files as plain data: options, checks, names, and the metadata of files (uploads-1 to uploads-25)."""
