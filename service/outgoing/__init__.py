"""Endpoints that call other services: HTTP types, proxies, and internal subrequests."""
