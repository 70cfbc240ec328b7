"""Switches that read the database as a start does, and serve nothing."""
