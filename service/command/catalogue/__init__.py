"""Switches that read the database as a start does, without serving."""
