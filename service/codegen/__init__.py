"""Writes clients and descriptions of the endpoints to disk: at startup, and when the endpoints have changed."""
