"""Endpoints that call other services: HTTP types, proxies, and calls of this service's own endpoints."""
