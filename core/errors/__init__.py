"""Errors as data: diagnostics of a start, problems of a request, error policies and retry strategies."""
