"""Several requests in one: in one transaction, or independent of each other."""
