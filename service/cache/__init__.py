"""Response cache: the steps around the run of a routine, and the endpoints that invalidate cached responses."""
