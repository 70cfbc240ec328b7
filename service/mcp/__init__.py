"""Endpoints as tools of language models: the server of the Model Context Protocol (reference 03, 12)."""
