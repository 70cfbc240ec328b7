"""Requests → arguments, in C."""
