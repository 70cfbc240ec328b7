"""Profiles of an endpoint or a statement."""
