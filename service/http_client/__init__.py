"""The HTTP client for requests to other servers: connections, their pool, and the client of a worker."""
