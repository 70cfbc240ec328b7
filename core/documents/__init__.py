"""Descriptions of the service: OpenAPI, example requests, contracts. Endpoints in, texts out, no I/O."""
