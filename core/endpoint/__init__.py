"""Endpoints and their parts: parameters, options, templates, result shape, call."""
