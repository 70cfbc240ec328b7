"""Queries over the results of `queryable` endpoints, and the responses with their pages."""
