"""Descriptions of the service: OpenAPI, example requests, MCP tools, contracts. Endpoints in, texts out, no I/O."""
