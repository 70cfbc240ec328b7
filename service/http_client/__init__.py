"""Requests to other servers: connections, the pool of them, and the one client of a worker."""
