"""Endpoints as tools of language models: a server of the Model Context Protocol (mcp-1 to mcp-7, mcp-9)."""
