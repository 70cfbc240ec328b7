"""The HTTP/1.1 server: messages, connections, and what the steps of a request see of them (RFC 9112)."""
