"""Sends the files that rows of routines name."""
