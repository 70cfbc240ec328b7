"""Answers that are kept: the steps around the run of a routine, and the endpoints that forget."""
