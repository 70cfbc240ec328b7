"""Generates typed Python clients over httpx, with and without asyncio. Endpoints in, texts of files out."""
