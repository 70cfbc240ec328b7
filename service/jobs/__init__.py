"""Jobs: calls of endpoints that run later, in a worker of any host, until they have taken effect once."""
