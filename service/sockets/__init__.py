"""Listening sockets, their certificates, and client connections."""
