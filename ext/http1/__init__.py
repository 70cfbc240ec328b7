"""The HTTP/1.1 server (RFC 9112): parsing and writing of messages, connections, and the scope of a request that its
steps read."""
