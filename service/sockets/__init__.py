"""Listening sockets and their certificates."""
