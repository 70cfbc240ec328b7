"""Clients in Python: typed, over httpx, with and without asyncio. Endpoints in, texts of files out."""
