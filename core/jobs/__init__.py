"""Jobs: calls of endpoints that run later."""
